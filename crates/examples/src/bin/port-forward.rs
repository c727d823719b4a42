//! Gives connections to a range of ports of a host in user space to a server's ports, so that the long way to the clients uses
//! reknit's TCP, and the short one to the server the kernel's.
//!
//! ```sh
//! sudo port-forward 10.77.0.2 8000-8099 127.0.0.1:9000 bbr      # port 8005 goes to port 9005
//! ```
#![expect(clippy::print_stdout, reason = "a line for each connection")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reknit_net::{ListenOptions, Network, TcpListener, TcpStream};

/// How long what was sent may take to arrive after Ctrl-C.
const DRAIN: Duration = Duration::from_secs(30);

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (address, ports, server, variant) = match arguments.as_slice() {
        [address, ports, server] => (address, ports, server, "reknit"),
        [address, ports, server, variant] => (address, ports, server, variant.as_str()),
        _ => return Err(invalid("usage: port-forward ADDRESS FIRST-LAST SERVER:PORT [VARIANT]")),
    };
    let address: IpAddr = address.parse().map_err(|error| invalid(&format!("{address}: {error}")))?;
    let server: SocketAddr = server.parse().map_err(|error| invalid(&format!("{server}: {error}")))?;
    let bounds = ports.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    let (first, last) =
        bounds.ok_or_else(|| invalid(&format!("{ports}: give the first and the last port, 8000-8099")))?;

    let network = Network::builder(address)
        .device("reknit0", kernel(address)?, 24)
        .variant(variant)
        .map_err(io::Error::other)?
        .start()?;
    let options = ListenOptions { socket: network.socket_options().clone(), ..ListenOptions::default() };
    let listener = TcpListener::bind_ports(&network, address, first..=last, &options)?;
    eprintln!("{address}, ports {ports}: connections go to {server}");
    tokio::select! {
        ended = serve(listener, first, server) => ended,
        _ = tokio::signal::ctrl_c() => network.shutdown(DRAIN).await.map_err(io::Error::other),
    }
}

async fn serve(listener: TcpListener, first: u16, server: SocketAddr) -> io::Result<()> {
    loop {
        let (client, peer) = listener.accept().await?;
        let port = server.port().checked_add(client.local_addr()?.port() - first);
        let server = SocketAddr::new(server.ip(), port.ok_or_else(|| invalid("the server has no such port"))?);
        tokio::spawn(async move {
            match relay(client, server).await {
                Ok((sent, received)) => println!("{peer} to {server}: {sent} bytes there, {received} bytes back"),
                Err(error) => println!("{peer} to {server}: {error}"),
            }
        });
    }
}

async fn relay(mut client: TcpStream, server: SocketAddr) -> io::Result<(u64, u64)> {
    let mut upstream = tokio::net::TcpStream::connect(server).await?;
    let copied = tokio::io::copy_bidirectional(&mut client, &mut upstream).await?;
    client.closed().await?; // the client has everything
    Ok(copied)
}

/// The kernel's address on the device: the first of the network, or the second if that is ours.
fn kernel(address: IpAddr) -> io::Result<IpAddr> {
    let IpAddr::V4(ip) = address else { return Err(invalid("an IPv4 address")) };
    let [a, b, c, d] = ip.octets();
    Ok([a, b, c, if d == 1 { 2 } else { 1 }].into())
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
