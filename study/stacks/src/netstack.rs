//! netstack-smoltcp with its defaults. Tasks carry its packets as in its examples `forward` and `forward-offload-linux`.

use std::io;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use netstack_smoltcp::{StackBuilder, TcpStream};
use tun_rs::{DeviceBuilder, IDEAL_BATCH_SIZE, VIRTIO_NET_HDR_LEN};

use crate::{DEVICE, KERNEL, listening};

/// With offload, the kernel sends several segments as one packet. The stack does not know such packets: it gets them cut, and
/// sends single segments.
pub(crate) async fn accept(offload: bool) -> io::Result<TcpStream> {
    let builder = DeviceBuilder::new().name(DEVICE).mtu(1500).offload(offload).ipv4(KERNEL, 24, None);
    let device = Arc::new(builder.build_async()?);
    let (stack, runner, _, listener) = StackBuilder::default().enable_tcp(true).mtu(1500).build()?;
    let (Some(runner), Some(mut listener)) = (runner, listener) else { unreachable!("TCP is enabled") };
    tokio::spawn(runner);
    let (mut to_stack, mut from_stack) = stack.split();
    let to_device = device.clone();
    tokio::spawn(async move {
        while let Some(Ok(mut packet)) = from_stack.next().await {
            if offload {
                packet.splice(..0, [0; VIRTIO_NET_HDR_LEN]);
            }
            let _ = to_device.send(&packet).await; // what the kernel does not take is lost, as in any network
        }
    });
    tokio::spawn(async move {
        let mut whole = vec![0; VIRTIO_NET_HDR_LEN + 65535];
        let (mut packets, mut sizes) = (vec![vec![0; 1600]; IDEAL_BATCH_SIZE], vec![0; IDEAL_BATCH_SIZE]);
        while let Ok(n) = device.recv_multiple(&mut whole, &mut packets, &mut sizes, 0).await {
            for (packet, &size) in packets.iter().zip(&sizes).take(n) {
                let _ = to_stack.send(packet[..size].to_vec()).await; // refuses packets that are not valid
            }
        }
    });
    let _listening = listening()?;
    Ok(listener.next().await.ok_or(io::ErrorKind::BrokenPipe)?.0)
}
