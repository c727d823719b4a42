//! The errors of calls on sockets.

use std::net::SocketAddr;

use reknit_tcp::CloseReason;
use reknit_tcp::config::ConfigError;

/// Why an operation failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// Nothing can be read or written now; an event follows when that changes.
    #[error("would block")]
    WouldBlock,
    /// The connection has ended.
    #[error(transparent)]
    Ended(#[from] CloseReason),
    /// An ICMP message reported this while the connection was being opened, or about a datagram of a connected UDP socket.
    #[error("destination unreachable")]
    Unreachable,
    /// An ICMP message reported that nobody listens at the destination of a connected UDP socket.
    #[error("connection refused: nobody listens at the destination")]
    Refused,
    /// A UDP socket has no destination.
    #[error("the socket is not connected; connect it, or say where to send")]
    NotConnected,
    /// A UDP socket for many ports, or for all addresses, cannot be connected.
    #[error("only a socket that is bound to a single port can be connected")]
    ManyPorts,
    /// This direction was shut down before.
    #[error("the socket was shut down for this direction")]
    ShutDown,
    /// There is no such socket, listener or request: it was closed or forgotten.
    #[error("no such socket: it was closed")]
    NoSocket,
    /// The address is in use.
    #[error("{0} is in use; choose another port, or 0 for a free one")]
    InUse(SocketAddr),
    /// The address is not one of this host.
    #[error("{0} is not an address of this stack; it has {1}")]
    NotLocal(SocketAddr, String),
    /// The address cannot be connected to.
    #[error("cannot connect to {0}; the address must be that of a host, and the port at least 1")]
    NoDestination(SocketAddr),
    /// The address is one of this host; there is no loopback.
    #[error("cannot connect to {0}: it is an address of this stack itself")]
    Own(SocketAddr),
    /// There is no local address of the same family.
    #[error("cannot connect to {0}: there is no IPv{family} address to connect from", family = family(.0))]
    NoFamily(SocketAddr),
    /// All ports to this address are in use.
    #[error("all ports for connections to {0} are in use; close some of them, or connect from another address")]
    NoPort(SocketAddr),
    /// No range of ports.
    #[error("ports {0} to {1}: give the smallest first, at least 1")]
    NoPorts(u16, u16),
    /// A UDP socket is not bound to this address.
    #[error("{0} cannot be sent from: the socket is bound to another address or port")]
    NotBound(SocketAddr),
    /// A UDP socket for all addresses must say from which of them it sends.
    #[error("a socket for all addresses must say from which of them it sends")]
    NoSource,
    /// The datagram does not fit in a packet.
    #[error("a datagram of {0} bytes is too long; the interface carries {1}")]
    TooLong(usize, usize),
    /// Packets to other addresses are ignored.
    #[error("the stack does not forward; set `max_requests`")]
    NoForwarding,
    /// The stack has as many sockets as it may have.
    #[error("the stack has reached its limit of {0} sockets")]
    Full(usize),
    /// An option is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

fn family(address: &SocketAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}
