//! TCP and UDP sockets for tokio on reknit's own TCP, over a TUN device or anything else that transports packets.
//!
//! A [`Network`] has its own IP addresses, packet I/O ([`PacketIo`], for example a TUN device to the kernel), and one driver task
//! that moves packets between the two and a [`reknit_stack::Stack`]. [`TcpListener`], [`TcpStream`] and [`UdpSocket`] are used
//! like those of tokio.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use reknit_net::{Network, TcpListener};
//!
//! let network = Network::builder("10.77.0.2".parse().unwrap()).device("reknit0", "10.77.0.1".parse().unwrap(), 24).start()?;
//! let listener = TcpListener::bind(&network, "10.77.0.2:80".parse().unwrap())?;
//! let (stream, peer) = listener.accept().await?;
//! # Ok(())
//! # }
//! ```

mod alarm;
mod builder;
mod clock;
mod drain;
mod driver;
mod errors;
mod forward;
mod frame;
mod io;
mod listener;
mod network;
mod receive;
mod run;
mod split;
mod state;
mod stream;
mod udp;

pub use builder::Builder;
pub use driver::Driver;
pub use forward::{TcpForwarder, TcpRequest};
#[cfg(feature = "tun")]
pub use io::Device;
#[cfg(feature = "ethernet")]
pub use io::EthernetIo;
#[cfg(feature = "fd")]
pub use io::FdIo;
pub use io::{ChannelIo, PacketIo, channel, pair};
pub use listener::TcpListener;
pub use network::Network;
pub use reknit_stack::{
    Counters, IcmpError, Linger, ListenOptions, Received, Request, Shutdown, SocketInfo, SocketOptions, UdpOptions,
    Undelivered,
};
pub use reknit_tcp::config::{Config, KeepAlive};
pub use reknit_units::{Bytes, Duration};
pub use reknit_variants::Composition;
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use stream::TcpStream;
pub use udp::UdpSocket;

/// The complete programs of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/sockets.md")]
struct Guide;
