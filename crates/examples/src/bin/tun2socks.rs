//! Sends the TCP connections and UDP datagrams that are routed to a device through a SOCKS5 server.
//!
//! ```sh
//! sudo tun2socks 192.0.2.1:1080 tun0
//! sudo ip route add 203.0.113.0/24 dev tun0            # in another terminal; not the server's own address
//! curl http://203.0.113.5/
//! ```

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fast_socks5::client::{Config, Socks5Datagram, Socks5Stream};
use fast_socks5::util::target_addr::TargetAddr;
use reknit_net::{IcmpError, Network, TcpForwarder, TcpRequest, UdpOptions, UdpSocket};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The most connections that wait for the server at the same time.
const MAX_REQUESTS: usize = 1024;
/// The most UDP clients at the same time; each costs a connection to the server.
const MAX_CLIENTS: usize = 1024;
/// The most datagrams of a client that wait for the server.
const MAX_WAITING: usize = 64;
/// A client that has neither sent nor received a datagram for this long is forgotten (RFC 4787 REQ-5).
const IDLE: Duration = Duration::from_mins(2);
/// The largest datagram.
const LARGEST: usize = 65_535;

/// A datagram, and where it goes to or comes from.
type Datagram = (SocketAddr, Vec<u8>);

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, device] = arguments.as_slice() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "usage: tun2socks SERVER:PORT DEVICE"));
    };
    let server = server.parse().map_err(|error| io::Error::other(format!("{server}: {error}")))?;
    let network = Network::builder([10, 255, 0, 2].into())
        .address("fd00:ff::2".parse().expect("a valid address"))
        .device(device, [10, 255, 0, 1].into(), 24)
        .device_address("fd00:ff::1".parse().expect("a valid address"), 64)
        .forward(MAX_REQUESTS)
        .start()?;
    eprintln!("{device}: what is routed here goes through {server}");
    tokio::select! {
        ended = forward_connections(&network, server) => ended,
        ended = forward_datagrams(&network, server) => ended,
        _ = tokio::signal::ctrl_c() => network.shutdown(Duration::from_secs(5)).await.map_err(io::Error::other),
    }
}

async fn forward_connections(network: &Network, server: SocketAddr) -> io::Result<()> {
    let forwarder = TcpForwarder::new(network);
    loop {
        tokio::spawn(connect(forwarder.next().await?, server));
    }
}

/// Answers a request when the server has connected to where the client wants to go.
async fn connect(request: TcpRequest, server: SocketAddr) {
    let target = request.local_addr();
    let connected = Socks5Stream::connect(server, target.ip().to_string(), target.port(), Config::default()).await;
    match connected {
        Ok(mut upstream) => {
            if let Ok(mut client) = request.accept().await
                && let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut upstream).await
            {
                eprintln!("{target}: {error}");
            }
        }
        Err(error) => {
            eprintln!("{target}: {error}");
            request.refuse_by_icmp(IcmpError::HostUnreachable);
        }
    }
}

async fn forward_datagrams(network: &Network, server: SocketAddr) -> io::Result<()> {
    let socket = Arc::new(UdpSocket::forward(network, &UdpOptions::default())?);
    let mut clients: BTreeMap<SocketAddr, Sender<Datagram>> = BTreeMap::new();
    let mut bytes = vec![0; LARGEST];
    loop {
        let received = socket.recv(&mut bytes).await?;
        let datagram = (received.local, bytes[..received.len].to_vec());
        clients.retain(|_, client| !client.is_closed());
        let is_known = clients.contains_key(&received.remote);
        if !is_known && clients.len() >= MAX_CLIENTS {
            continue;
        }
        let client = clients.entry(received.remote).or_insert_with(|| {
            let (datagrams, outgoing) = channel(MAX_WAITING);
            tokio::spawn(serve(socket.clone(), received.remote, outgoing, server));
            datagrams
        });
        let _ = client.try_send(datagram); // if there is no room, it is lost, as in any network
    }
}

/// Carries the datagrams of one client, until it has been idle for a while.
async fn serve(socket: Arc<UdpSocket>, client: SocketAddr, outgoing: Receiver<Datagram>, server: SocketAddr) {
    if let Err(error) = Box::pin(relay(&socket, client, outgoing, server)).await {
        eprintln!("{client}: {error}");
    }
}

async fn relay(
    socket: &UdpSocket,
    client: SocketAddr,
    mut outgoing: Receiver<Datagram>,
    server: SocketAddr,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let upstream = Socks5Datagram::bind(TcpStream::connect(server).await?, any).await?;
    let mut bytes = vec![0; LARGEST];
    loop {
        tokio::select! {
            datagram = outgoing.recv() => {
                let Some((target, bytes)) = datagram else { return Ok(()) };
                upstream.send_to(&bytes, target).await?;
            }
            received = upstream.recv_from(&mut bytes) => {
                let (len, TargetAddr::Ip(from)) = received? else { continue };
                let from = SocketAddr::new(from.ip().to_canonical(), from.port());
                // One that is too long for the device is lost.
                let _ = socket.send_from(&bytes[..len], from, client).await;
            }
            () = tokio::time::sleep(IDLE) => return Ok(()),
        }
    }
}
