//! The connection to the server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{IpTransparent, Mark as SetMark, TcpKeepCount, TcpKeepIdle, TcpKeepInterval};
use reknit_net::{Network, SocketOptions, TcpStream};
use tokio::net::TcpSocket;

use crate::marks::Mark;
use crate::settings::{ClientAddress, Listener};
use crate::steering::{PortClasses, needs_transparent};

/// Keep-alive on both legs, in seconds: a connection without data is probed after this time, at these intervals, and ends if so
/// many probes are not answered.
pub(crate) const KEEP_ALIVE_IDLE: u32 = 300;
pub(crate) const KEEP_ALIVE_INTERVAL: u32 = 30;
pub(crate) const KEEP_ALIVE_PROBES: u32 = 6;
/// How often another port is tried.
const TRIES: u16 = 64;

/// Connects with a socket of the kernel. `mark` makes the server's packets come back to it.
pub(crate) async fn by_kernel(
    listener: &Listener,
    client: SocketAddr,
    server: SocketAddr,
    mark: Mark,
    classes: Option<PortClasses>,
) -> io::Result<tokio::net::TcpStream> {
    let socket = if needs_transparent(listener) {
        transparent(client, mark, classes)?
    } else if server.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_keepalive(true)?;
    setsockopt(&socket, TcpKeepIdle, &KEEP_ALIVE_IDLE)?;
    setsockopt(&socket, TcpKeepInterval, &KEEP_ALIVE_INTERVAL)?;
    setsockopt(&socket, TcpKeepCount, &KEEP_ALIVE_PROBES)?;
    let stream = socket.connect(server).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A socket with the client's address. Its port differs from the client's: if the server's address is the one that the client has
/// asked for, both connections would be the same to the connection tracking. It is not in the `classes` that are compared either.
fn transparent(client: SocketAddr, mark: Mark, classes: Option<PortClasses>) -> io::Result<TcpSocket> {
    for _ in 0..TRIES {
        let socket = if client.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        setsockopt(&socket, IpTransparent, &true)?;
        setsockopt(&socket, SetMark, &mark.0)?;
        socket.bind(SocketAddr::new(client.ip(), 0))?;
        let port = socket.local_addr()?.port();
        if port != client.port() && classes.is_none_or(|classes| classes.of(port).is_none()) {
            return Ok(socket);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "no free port for the connection to the server"))
}

/// Connects with reknit's TCP, from the client's address and another port.
pub(crate) async fn by_network(
    network: &Network,
    client: SocketAddr,
    server: SocketAddr,
    options: &SocketOptions,
) -> io::Result<TcpStream> {
    let mut refused = None;
    for n in 1..=TRIES {
        let local = SocketAddr::new(client.ip(), other_port(client.port(), n));
        match TcpStream::connect_with(network, Some(local), server, options).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => refused = Some(error),
            result => return result,
        }
    }
    Err(refused.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

/// Another port of the dynamic range, a different one for each `n`.
fn other_port(port: u16, n: u16) -> u16 {
    const FIRST: u32 = 32_768;
    let candidate = (u32::from(port) + u32::from(n) * 7919) % FIRST + FIRST;
    let candidate = candidate as u16;
    if candidate == port { candidate ^ 1 } else { candidate }
}

/// The header of PROXY protocol version 2, if the listener sends one.
pub(crate) fn header(listener: &Listener, client: SocketAddr, asked: SocketAddr) -> Option<Vec<u8>> {
    (listener.client_address == ClientAddress::ProxyV2).then(|| proxy_v2(client, asked))
}

/// <https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt>, section 2.2.
fn proxy_v2(client: SocketAddr, asked: SocketAddr) -> Vec<u8> {
    const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
    const VERSION_2_PROXY: u8 = 0x21;
    const TCP_OVER_IPV4: u8 = 0x11;
    const TCP_OVER_IPV6: u8 = 0x21;
    let (family, addresses) = match (client.ip(), asked.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (TCP_OVER_IPV4, [from.octets(), to.octets()].concat()),
        (from, to) => (TCP_OVER_IPV6, [v6(from).octets(), v6(to).octets()].concat()),
    };
    let len = addresses.len() as u16 + 4;
    let mut header = [SIGNATURE, &[VERSION_2_PROXY, family], &len.to_be_bytes(), &addresses].concat();
    header.extend_from_slice(&client.port().to_be_bytes());
    header.extend_from_slice(&asked.port().to_be_bytes());
    header
}

fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::to_ipv6_mapped(&ip),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_port_is_never_the_clients() {
        for port in 1..=u16::MAX {
            for n in 1..=TRIES {
                let other = other_port(port, n);
                assert!(other != port && other >= 32_768, "{port}, {n}: {other}");
            }
        }
    }

    #[test]
    fn the_header_has_both_addresses() {
        let header = proxy_v2("192.0.2.1:4660".parse().unwrap(), "203.0.113.5:443".parse().unwrap());
        assert_eq!(header.len(), 28);
        assert_eq!(header[12..16], [0x21, 0x11, 0, 12]);
        assert_eq!(header[16..], [192, 0, 2, 1, 203, 0, 113, 5, 0x12, 0x34, 1, 187]);
        let header = proxy_v2("[2001:db8::1]:1".parse().unwrap(), "[2001:db8::2]:2".parse().unwrap());
        assert_eq!((header.len(), header[13], header[15]), (52, 0x21, 36));
    }
}
