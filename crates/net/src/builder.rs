//! Options of a network, and its start.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use reknit_stack::{Options, SocketOptions, Stack};
use reknit_units::Duration;

use crate::clock::{Clock, from_std};
use crate::driver::Driver;
use crate::io::PacketIo;
use crate::network::{Handle, Network};
use crate::state::{Shared, State};

/// Options of a [`Network`].
#[derive(Clone, Debug)]
pub struct Builder {
    stack: Options,
    sockets: SocketOptions,
    drain_limit: Duration,
    secret: Option<[u8; 32]>,
    /// Name, and the kernel's addresses with their prefixes.
    #[cfg(feature = "tun")]
    device: Option<(String, Vec<(IpAddr, u8)>)>,
    #[cfg(feature = "tun")]
    offload: bool,
}

impl Builder {
    pub(crate) fn new(stack: Options) -> Builder {
        Builder {
            stack,
            sockets: SocketOptions::default(),
            drain_limit: Duration::from_secs(30),
            secret: None,
            #[cfg(feature = "tun")]
            device: None,
            #[cfg(feature = "tun")]
            offload: true,
        }
    }

    /// A further address of this host.
    #[must_use]
    pub fn address(mut self, address: IpAddr) -> Builder {
        self.stack.addresses.push(address);
        self
    }

    /// The device to create: its name, the kernel's address on it, and the length of the network's prefix.
    #[cfg(feature = "tun")]
    #[must_use]
    pub fn device(mut self, name: &str, kernel: IpAddr, prefix: u8) -> Builder {
        self.device = Some((name.to_owned(), vec![(kernel, prefix)]));
        self
    }

    /// A further address of the kernel on the device, of either family.
    #[cfg(feature = "tun")]
    #[must_use]
    pub fn device_address(mut self, kernel: IpAddr, prefix: u8) -> Builder {
        if let Some((_, addresses)) = &mut self.device {
            addresses.push((kernel, prefix));
        }
        self
    }

    /// The largest packet, if the device is created: 1500 bytes by default.
    #[cfg(feature = "tun")]
    #[must_use]
    pub fn mtu(mut self, mtu: u16) -> Builder {
        self.stack.mtu = mtu;
        self
    }

    /// Whether the device coalesces segments and leaves out checksums (GRO, TSO). On by default.
    #[cfg(feature = "tun")]
    #[must_use]
    pub fn offload(mut self, offload: bool) -> Builder {
        self.offload = offload;
        self
    }

    /// Options of sockets for which no others are given.
    #[must_use]
    pub fn socket_options(mut self, options: SocketOptions) -> Builder {
        self.sockets = options;
        self
    }

    /// The algorithms of sockets for which no others are given.
    ///
    /// # Errors
    /// If there is no such variant; the message names similar ones.
    pub fn variant(mut self, name: &str) -> Result<Builder, reknit_variants::UnknownVariant> {
        self.sockets.variant = Arc::new((reknit_variants::find(name)?.compose)());
        Ok(self)
    }

    /// Changes the options of the stack as a whole.
    #[must_use]
    pub fn stack_options(mut self, change: impl FnOnce(&mut Options)) -> Builder {
        change(&mut self.stack);
        self
    }

    /// Lets peers connect to any address and port: [`TcpForwarder`](crate::TcpForwarder) gets connections to ports without a
    /// listener. At most `max_requests` wait for a decision at the same time; further SYNs are ignored.
    #[must_use]
    pub fn forward(mut self, max_requests: usize) -> Builder {
        self.stack.max_requests = max_requests;
        self
    }

    /// How long a network that is dropped, or whose runtime ends, may take to deliver written data: 30 s by default. With zero
    /// the data is lost.
    #[must_use]
    pub fn drain_limit(mut self, limit: std::time::Duration) -> Builder {
        self.drain_limit = from_std(limit);
        self
    }

    /// The secret from which sequence numbers, ports and cookies are derived, for repeatable runs. Without it, each network has a
    /// random one.
    #[must_use]
    pub fn secret(mut self, secret: [u8; 32]) -> Builder {
        self.secret = Some(secret);
        self
    }

    /// Creates the device in the calling thread's network namespace, and starts the driver as a task of the current tokio
    /// runtime.
    ///
    /// # Errors
    /// If there is no runtime, the device cannot be created, or an option is not valid.
    #[cfg(feature = "tun")]
    pub fn start(self) -> io::Result<Network> {
        check_runtime()?;
        let Some((name, addresses)) = self.device.as_ref().filter(|(_, addresses)| !addresses.is_empty()) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no device: call `device` with its name and address",
            ));
        };
        let (kernel, prefix) = addresses[0];
        let device = crate::io::Device::create(name, kernel, prefix, self.stack.mtu, self.offload)?;
        for (kernel, prefix) in &addresses[1..] {
            device.add_address(*kernel, *prefix)?;
        }
        self.start_on(device)
    }

    /// Starts on existing packet I/O, for example a [`Device`](crate::Device), whose MTU is used. The driver is a task of the
    /// current tokio runtime, which must have timers (`enable_time` or `enable_all`).
    ///
    /// # Errors
    /// If there is no runtime, or an option is not valid.
    pub fn start_on(self, io: impl PacketIo) -> io::Result<Network> {
        check_runtime()?;
        let (network, driver) = self.build(io)?;
        tokio::spawn(driver.run());
        Ok(network)
    }

    /// A network and its driver, which must be run: in a tokio runtime ([`Driver::run`]), in another one
    /// ([`Driver::run_with`]), or in a thread ([`Driver::run_in_thread`]).
    ///
    /// # Errors
    /// If an option is not valid.
    pub fn build<P: PacketIo>(mut self, io: P) -> io::Result<(Network, Driver<P>)> {
        self.sockets.config.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        (self.stack.mtu, self.stack.offload) = (io.mtu(), io.has_offload());
        let clock = Clock::start();
        let secret = self.secret.map_or_else(random, Ok)?;
        let state = State::new(Stack::new(clock.now(), self.stack, secret));
        let shared = Arc::new(Shared::new(state, clock, self.sockets, self.drain_limit));
        let driver = Driver::new(shared.clone(), io);
        Ok((Network { shared: Arc::new(Handle(shared)) }, driver))
    }
}

/// A secret.
fn random() -> io::Result<[u8; 32]> {
    let mut secret = [0; 32];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut secret)?;
    Ok(secret)
}

/// Returns an error, instead of a panic, if there is no tokio runtime.
pub(crate) fn check_runtime() -> io::Result<()> {
    tokio::runtime::Handle::try_current().map(drop).map_err(|_| {
        io::Error::other("there is no tokio runtime here; call this from async code, or after `Runtime::enter`")
    })
}
