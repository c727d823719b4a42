//! The exit of a WireGuard tunnel, without a device and without privileges: what the peer sends to any address leaves from here,
//! by ordinary sockets.
//!
//! ```sh
//! wireguard-exit 0.0.0.0:51820 PRIVATE-KEY PEERS-PUBLIC-KEY      # 64 hexadecimal digits each
//! ```

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use boringtun::noise::Tunn;
use reknit_examples::{key, tunnel};
use reknit_net::{IcmpError, Network, TcpForwarder, TcpRequest, UdpOptions, UdpSocket};
use tokio::net::{TcpStream, UdpSocket as KernelSocket};

/// What WireGuard leaves of 1500 bytes over IPv6.
const MTU: u16 = 1420;
/// Packets that wait in each direction.
const CAPACITY: usize = 512;
/// The most connections that wait for their servers at the same time.
const MAX_REQUESTS: usize = 1024;
/// The most UDP clients at the same time.
const MAX_CLIENTS: usize = 1024;
/// A client that has neither sent nor received a datagram for this long is forgotten (RFC 4787 REQ-5).
const IDLE: Duration = Duration::from_mins(2);
/// The largest datagram.
const LARGEST: usize = 65_535;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [local, private, public] = arguments.as_slice() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "usage: wireguard-exit ADDRESS:PORT PRIVATE-KEY PUBLIC-KEY",
        ));
    };
    let tunn = Tunn::new(key(private)?.into(), key(public)?.into(), None, None, 1, None);
    let socket = KernelSocket::bind(local).await?;
    let (io, to_network, from_network) = reknit_net::channel(MTU, CAPACITY);
    // Its own address is not used by anybody: what the peer sends goes to others.
    let network = Network::builder([10, 255, 0, 1].into()).forward(MAX_REQUESTS).start_on(io)?;
    eprintln!("{local}: the peer may connect");
    tokio::select! {
        ended = tunnel(tunn, socket, None, to_network, from_network) => ended,
        ended = forward_connections(&network) => ended,
        ended = forward_datagrams(&network) => ended,
        _ = tokio::signal::ctrl_c() => network.shutdown(Duration::from_secs(5)).await.map_err(io::Error::other),
    }
}

async fn forward_connections(network: &Network) -> io::Result<()> {
    let forwarder = TcpForwarder::new(network);
    loop {
        tokio::spawn(connect(forwarder.next().await?));
    }
}

/// Answers a request when its server has answered.
async fn connect(request: TcpRequest) {
    let target = request.local_addr();
    match TcpStream::connect(target).await {
        Ok(mut upstream) => {
            if let Ok(mut client) = request.accept().await
                && let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut upstream).await
            {
                eprintln!("{target}: {error}");
            }
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => request.refuse(),
        Err(error) => {
            eprintln!("{target}: {error}");
            request.refuse_by_icmp(IcmpError::HostUnreachable);
        }
    }
}

async fn forward_datagrams(network: &Network) -> io::Result<()> {
    let socket = Arc::new(UdpSocket::forward(network, &UdpOptions::default())?);
    let mut clients: BTreeMap<SocketAddr, Arc<KernelSocket>> = BTreeMap::new();
    let mut bytes = vec![0; LARGEST];
    loop {
        let received = socket.recv(&mut bytes).await?;
        clients.retain(|_, upstream| Arc::strong_count(upstream) > 1); // its task has not ended
        if !clients.contains_key(&received.remote) {
            if clients.len() >= MAX_CLIENTS {
                continue;
            }
            let any = if received.remote.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let upstream = Arc::new(KernelSocket::bind(any).await?);
            clients.insert(received.remote, upstream.clone());
            tokio::spawn(return_answers(socket.clone(), received.remote, upstream));
        }
        let _ = clients[&received.remote].send_to(&bytes[..received.len], received.local).await;
    }
}

/// Carries datagrams back to one client, until it has got none for a while.
async fn return_answers(socket: Arc<UdpSocket>, client: SocketAddr, upstream: Arc<KernelSocket>) {
    let mut bytes = vec![0; LARGEST];
    // An error tells that a datagram was refused; others may not be.
    while let Ok(received) = tokio::time::timeout(IDLE, upstream.recv_from(&mut bytes)).await {
        if let Ok((len, from)) = received {
            let _ = socket.send_from(&bytes[..len], from, client).await;
        }
    }
}
