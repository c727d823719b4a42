//! A user-space host: addresses, a device, and the state that its sockets share.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use reknit_stack::{Counters, Error, Event, ListenerId, Options, SocketId, SocketOptions, Stack};
use reknit_units::Instant;
use tokio::sync::Notify;

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::device::Device;
use crate::driver;

/// Tasks that wait for a socket.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) read: Option<Waker>,
    pub(crate) write: Option<Waker>,
}

/// What the lock protects.
pub(crate) struct State {
    pub(crate) stack: Stack,
    /// By index of the socket.
    pub(crate) waiting: Vec<Waiting>,
    /// Several tasks may wait for connections of one listener.
    pub(crate) accepting: BTreeMap<ListenerId, Vec<Waker>>,
    /// No handle is left: the driver ends when everything is sent.
    pub(crate) is_abandoned: bool,
    /// Why the device can no longer be used.
    pub(crate) failure: Option<String>,
}

impl State {
    /// The error of calls that would wait for a device that has failed.
    pub(crate) fn check_device(&self) -> io::Result<()> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(io::Error::other(failure.clone())))
    }

    pub(crate) fn waiting(&mut self, id: SocketId) -> &mut Waiting {
        let index = id.index();
        if index >= self.waiting.len() {
            self.waiting.resize_with(index + 1, Waiting::default);
        }
        &mut self.waiting[index]
    }

    /// The task is woken when the listener has a connection.
    pub(crate) fn wait_to_accept(&mut self, id: ListenerId, waker: &Waker) {
        let waiting = self.accepting.entry(id).or_default();
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    /// Wakes the tasks that wait for what has happened.
    pub(crate) fn dispatch(&mut self) {
        while let Some(event) = self.stack.next_event() {
            let wakers = match event {
                Event::Acceptable(id) => {
                    self.accepting.remove(&id).into_iter().flatten().for_each(Waker::wake);
                    continue;
                }
                Event::Readable(id) => [self.waiting(id).read.take(), None],
                Event::Connected(id) | Event::Writable(id) => [None, self.waiting(id).write.take()],
                Event::Closed(id) => {
                    let waiting = self.waiting(id);
                    [waiting.read.take(), waiting.write.take()]
                }
            };
            wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }
}

/// What the driver and all sockets share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Tells the driver that the stack may have something to send.
    pub(crate) work: Notify,
    pub(crate) clock: Clock,
    pub(crate) options: SocketOptions,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Runs `act` on the stack, then lets the driver send what it has to.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.lock();
        let had_work = state.stack.deadline() == Instant::ZERO;
        let result = act(&mut state, self.now());
        // Work that was there before was announced before.
        if !had_work && state.stack.deadline() == Instant::ZERO {
            self.work.notify_one();
        }
        result
    }
}

/// The last of these to go ends the driver.
pub(crate) struct Handle(Arc<Shared>);

impl std::ops::Deref for Handle {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().is_abandoned = true;
        self.0.work.notify_one();
    }
}

/// A host in user space, with its own TCP and addresses. Clones refer to the same host; it ends when all clones and all
/// of its sockets are dropped.
#[derive(Clone)]
pub struct Network {
    pub(crate) shared: Arc<Handle>,
}

/// Options of a [`Network`].
#[derive(Clone, Debug)]
pub struct Builder {
    stack: Options,
    sockets: SocketOptions,
    device: Option<(String, IpAddr, u8)>,
    offload: bool,
}

impl Network {
    /// A host with this address. The kernel's address on the device must be another one of the same network.
    pub fn builder(address: IpAddr) -> Builder {
        let stack = Options { addresses: vec![address], ..Options::default() };
        Builder { stack, sockets: SocketOptions::default(), device: None, offload: true }
    }

    /// What the stack has counted so far.
    pub fn counters(&self) -> Counters {
        *self.shared.lock().stack.counters()
    }

    /// The number of sockets of all kinds, with those in TIME-WAIT.
    pub fn sockets(&self) -> usize {
        self.shared.lock().stack.sockets()
    }

    /// The options of sockets for which no others are given.
    pub fn socket_options(&self) -> &SocketOptions {
        &self.shared.options
    }
}

impl Builder {
    /// A further address of this host.
    #[must_use]
    pub fn address(mut self, address: IpAddr) -> Builder {
        self.stack.addresses.push(address);
        self
    }

    /// The device to create: its name, the kernel's address on it, and the length of the network's prefix.
    #[must_use]
    pub fn device(mut self, name: &str, kernel: IpAddr, prefix: u8) -> Builder {
        self.device = Some((name.to_owned(), kernel, prefix));
        self
    }

    /// The largest packet, if the device is created: 1500 bytes by default.
    #[must_use]
    pub fn mtu(mut self, mtu: u16) -> Builder {
        self.stack.mtu = mtu;
        self
    }

    /// Whether the device joins segments and leaves out checksums. On by default.
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

    /// Creates the device in the calling thread's network namespace, and starts the driver as a task of the current tokio
    /// runtime.
    ///
    /// # Errors
    /// If the device cannot be created, or an option is not valid.
    pub fn start(self) -> io::Result<Network> {
        let Some((name, kernel, prefix)) = self.device.clone() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no device: call `device` with its name and address",
            ));
        };
        let device = Device::create(&name, kernel, prefix, self.stack.mtu, self.offload)?;
        self.start_on(device)
    }

    /// Starts on a device that exists. Its MTU counts.
    ///
    /// # Errors
    /// If an option is not valid.
    pub fn start_on(mut self, device: Device) -> io::Result<Network> {
        self.sockets.config.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.stack.mtu = device.mtu;
        let (clock, alarm) = (Clock::start(), Alarm::new()?);
        let mut secret = [0; 32];
        io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut secret)?;
        let state = State {
            stack: Stack::new(clock.now(), self.stack, secret),
            waiting: Vec::new(),
            accepting: BTreeMap::new(),
            is_abandoned: false,
            failure: None,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), work: Notify::new(), clock, options: self.sockets });
        tokio::spawn(driver::run(shared.clone(), device, alarm));
        Ok(Network { shared: Arc::new(Handle(shared)) })
    }
}

/// As the standard library reports it.
pub(crate) fn to_io(error: Error) -> io::Error {
    use reknit_tcp::CloseReason;
    let kind = match &error {
        Error::WouldBlock => io::ErrorKind::WouldBlock,
        Error::Ended(CloseReason::Refused) => io::ErrorKind::ConnectionRefused,
        Error::Ended(CloseReason::Reset) => io::ErrorKind::ConnectionReset,
        Error::Ended(CloseReason::TimedOut) => io::ErrorKind::TimedOut,
        Error::Ended(CloseReason::Aborted | CloseReason::Lied) => io::ErrorKind::ConnectionAborted,
        Error::Ended(CloseReason::Finished) | Error::ShutDown => io::ErrorKind::BrokenPipe,
        Error::Unreachable => io::ErrorKind::HostUnreachable,
        Error::NoSocket => io::ErrorKind::NotConnected,
        Error::InUse(_) => io::ErrorKind::AddrInUse,
        Error::NotLocal(..) | Error::NoPort(_) | Error::NoFamily(_) => io::ErrorKind::AddrNotAvailable,
        Error::NoDestination(_) | Error::Own(_) | Error::Config(_) => io::ErrorKind::InvalidInput,
        Error::Full(_) => io::ErrorKind::OutOfMemory,
    };
    io::Error::new(kind, error)
}
