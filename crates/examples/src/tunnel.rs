//! A WireGuard tunnel to one peer.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use boringtun::noise::{Tunn, TunnResult};
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{Receiver, Sender};

/// The largest UDP datagram.
const LARGEST: usize = 65_535;
/// How often boringtun looks at its timers.
const TICK: Duration = Duration::from_millis(250);

/// A key of 64 hexadecimal digits.
///
/// # Errors
/// If it is none.
pub fn key(text: &str) -> io::Result<[u8; 32]> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, format!("{text}: a key has 64 hexadecimal digits"));
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>().ok_or_else(invalid)?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte * 16 + *digit as u8)).collect();
    if digits.len() == 64 { bytes.try_into().map_err(|_| invalid()) } else { Err(invalid()) }
}

/// Carries packets between a network's channels (see [`reknit_net::channel`]) and a peer, until one of the channels is closed.
/// Without an address the peer is whoever proves to have its key; it may move.
///
/// # Errors
/// If the socket fails.
pub async fn tunnel(
    mut tunn: Tunn,
    socket: UdpSocket,
    mut peer: Option<SocketAddr>,
    to_network: Sender<Vec<u8>>,
    mut from_network: Receiver<Vec<u8>>,
) -> io::Result<()> {
    let (mut arrived, mut out) = (vec![0; LARGEST], vec![0; LARGEST + 148]);
    let mut ticks = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            received = socket.recv_from(&mut arrived) => {
                let (len, from) = received?;
                let mut result = tunn.decapsulate(Some(from.ip()), &arrived[..len], &mut out);
                // Packets that have waited for the handshake follow its last message.
                while let TunnResult::WriteToNetwork(datagram) = result {
                    socket.send_to(datagram, from).await?;
                    result = tunn.decapsulate(None, &[], &mut out);
                }
                if let TunnResult::WriteToTunnelV4(packet, _) | TunnResult::WriteToTunnelV6(packet, _) = result {
                    peer = Some(from); // what it has sent could be decrypted
                    let _ = to_network.try_send(packet.to_vec()); // if there is no room, it is lost, as in any network
                }
            }
            packet = from_network.recv() => {
                let Some(packet) = packet else { return Ok(()) };
                send(&socket, peer, &tunn.encapsulate(&packet, &mut out)).await;
            }
            _ = ticks.tick() => send(&socket, peer, &tunn.update_timers(&mut out)).await,
        }
    }
}

/// Sends a datagram, if there is one, to the peer, if it is known. It may be lost, as any datagram.
async fn send(socket: &UdpSocket, peer: Option<SocketAddr>, result: &TunnResult<'_>) {
    if let (TunnResult::WriteToNetwork(datagram), Some(peer)) = (result, peer) {
        let _ = socket.send_to(datagram, peer).await;
    }
}
