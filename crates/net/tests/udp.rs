//! UDP and ping with this machine's kernel.

mod namespace;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;

use namespace::{KERNEL, KERNEL_6, OURS, OURS_6, in_namespace, network};
use reknit_net::{Device, Network, UdpOptions, UdpSocket};
use reknit_testkit::machine;
use tokio::net::UdpSocket as KernelSocket;

/// Two datagrams there and back.
async fn exchange(ours: &UdpSocket, kernel: &KernelSocket, to: SocketAddr) -> io::Result<()> {
    let mut into = vec![0; 70_000];
    for len in [0, 1400] {
        kernel.send_to(&vec![3; len], to).await?;
        let received = ours.recv(&mut into).await?;
        assert_eq!((received.len, received.remote, received.local), (len, kernel.local_addr()?, to));
        assert_eq!(ours.send_from(&into[..len], to, received.remote).await?, len);
        assert_eq!(kernel.recv_from(&mut into).await?, (len, to));
    }
    Ok(())
}

#[test]
fn datagrams_to_the_kernel_and_back() {
    for offload in [true, false] {
        in_namespace(move || async move {
            let network = network(offload)?;
            let ours = UdpSocket::bind(&network, "[::]:53".parse().unwrap())?;
            for (kernel, own) in [(KERNEL, OURS), (KERNEL_6, OURS_6)] {
                let kernel = KernelSocket::bind((kernel, 0)).await?;
                exchange(&ours, &kernel, (own, 53).into()).await?;
                // The kernel cuts it into fragments.
                kernel.send_to(&vec![9; 60_000], (own, 53)).await?;
                let mut into = vec![0; 70_000];
                assert_eq!(ours.recv(&mut into).await?.len, 60_000);
                assert!(into[..60_000].iter().all(|byte| *byte == 9));
            }
            let counters = network.counters();
            assert_eq!((counters.packets_reassembled, counters.datagrams_dropped), (2, 0));
            Ok(())
        });
    }
}

#[test]
fn a_port_without_a_socket_refuses() {
    in_namespace(|| async {
        let _network = network(true)?;
        for own in [OURS, OURS_6] {
            let any: IpAddr = if own.is_ipv4() { KERNEL } else { KERNEL_6 };
            let kernel = KernelSocket::bind((any, 0)).await?;
            kernel.connect((own, 53)).await?;
            kernel.send(b"x").await?;
            let error = kernel.recv(&mut [0; 9]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
        Ok(())
    });
}

#[test]
fn a_connected_socket_learns_that_the_kernel_refuses() {
    in_namespace(|| async {
        let network = network(true)?;
        for (kernel, own) in [(KERNEL, OURS), (KERNEL_6, OURS_6)] {
            let ours = UdpSocket::bind(&network, (own, 4000).into())?;
            assert_eq!(ours.send(b"x").await.unwrap_err().kind(), io::ErrorKind::NotConnected);
            ours.connect((kernel, 5300).into())?;
            ours.send(b"x").await?;
            let error = ours.recv(&mut [0; 9]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
            let kernel = KernelSocket::bind((kernel, 5300)).await?;
            assert_eq!((ours.peer_addr()?, ours.send(b"again").await?), (kernel.local_addr()?, 5));
            let mut into = [0; 9];
            assert_eq!(kernel.recv_from(&mut into).await?, (5, (own, 4000).into()));
            kernel.send_to(b"answer", (own, 4000)).await?;
            assert_eq!(ours.recv_from(&mut into).await?, (6, kernel.local_addr()?));
        }
        Ok(())
    });
}

#[test]
fn datagrams_to_any_address_are_forwarded_and_pings_answered() {
    if !machine::has(&["ip", "ping"]) {
        return;
    }
    in_namespace(|| async {
        let device = Device::create("reknit0", KERNEL, 24, 1500, true)?;
        let network = Network::builder(OURS).forward(16).start_on(device)?;
        assert!(Command::new("ip").args(["route", "add", "192.0.2.0/24", "dev", "reknit0"]).status()?.success());
        let ours = UdpSocket::forward(&network, &UdpOptions::default())?;
        let kernel = KernelSocket::bind((KERNEL, 0)).await?;
        exchange(&ours, &kernel, "192.0.2.7:53".parse().unwrap()).await?;
        let ping = tokio::task::spawn_blocking(|| {
            Command::new("ping").args(["-c", "3", "-i", "0.2", "-s", "1000", "10.77.0.2"]).output()
        });
        let output = ping.await??;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(network.counters().echo_replies, 3);
        Ok(())
    });
}

#[test]
fn datagrams_that_the_kernel_joins_arrive_one_by_one() {
    in_namespace(|| async {
        use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
        let network = network(true)?;
        let ours = UdpSocket::bind(&network, (OURS, 53).into())?;
        let kernel = KernelSocket::bind((KERNEL, 0)).await?;
        setsockopt(&kernel, UdpGsoSegment, &1000).map_err(io::Error::from)?;
        kernel.send_to(&vec![4; 4500], (OURS, 53)).await?;
        let mut into = [0; 2000];
        for len in [1000, 1000, 1000, 1000, 500] {
            assert_eq!(ours.recv(&mut into).await?.len, len);
        }
        Ok(())
    });
}
