//! The live kernel as the TCP under test of a script, in real time. Each script has a separate network namespace.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::mpsc;
use std::thread;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, Shutdown, SockFlag, SockType, SockaddrIn, accept4, bind, connect, listen, recv,
    send, setsockopt, shutdown, socket, sockopt,
};
use reknit_script::{CLOCK_START_MS, Call, RunReport, Script, Subject, Value, Variable, run, shifted};
use reknit_tcp::segment::{Flags, Segment, Timestamps};
use reknit_units::{Capacity, Duration, Instant};
use reknit_wire::{Decoded, Endpoints, encode};
use tun_rs::SyncDevice;

use crate::clock::{Clock, TimeSource};
use crate::namespace::{self, MTU};

/// The kernel's address, and the peer's.
const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const LOCAL_PORT: u16 = 8080;
const REMOTE_PORT: u16 = 9000;
/// The peer's initial sequence number: the numbers wrap in every script.
const PEER_ISN: u32 = u32::MAX - 70;
/// `tcpi_state` of an established connection.
const ESTABLISHED: u8 = 1;
/// How much times may differ, because the machine is shared.
const TOLERANCE: Duration = Duration::from_millis(30);
/// The share of a timer by which it may differ: the kernel's timers are exact to an eighth.
const SHARE: u64 = 8;
/// Longer scripts are not run, because time is real.
const LONGEST: Duration = Duration::from_secs(15);

/// The result of a script on the kernel.
#[derive(Debug)]
pub enum KernelRun {
    /// It ran.
    Ran(RunReport),
    /// It needs something that a kernel does not offer; the reason.
    NotApplicable(String),
}

/// Runs `script` against this machine's kernel. Needs root and TUN.
///
/// # Errors
/// If the namespace, the device or the socket cannot be made.
pub fn run_on_kernel(script: &Script) -> io::Result<KernelRun> {
    match Setting::of(script) {
        Ok(settings) => {
            let mut kernel = Kernel::new(script, settings)?;
            Ok(KernelRun::Ran(run(script, &mut kernel)))
        }
        Err(reason) => Ok(KernelRun::NotApplicable(reason)),
    }
}

/// A setting of the namespace.
struct Setting(&'static str, String);

impl Setting {
    /// What the script needs, or why the kernel does not have it.
    fn of(script: &Script) -> Result<Vec<Setting>, String> {
        if let Some(last) = script.lines.last().filter(|last| last.at > LONGEST) {
            return Err(format!("it takes {} in real time; the limit is {LONGEST}", last.at));
        }
        let config = &script.config;
        let switch = |on: bool| if on { "1" } else { "0" }.to_owned();
        let mut settings = vec![
            Setting("tcp_sack", switch(config.sack)),
            Setting("tcp_dsack", switch(config.dsack)),
            Setting("tcp_timestamps", switch(config.timestamps)),
            Setting("tcp_ecn", switch(config.ecn)),
            Setting("tcp_slow_start_after_idle", switch(config.idle_restart)),
            Setting("tcp_rto_min_us", (config.min_rto.as_nanos() / 1000).to_string()),
            Setting("tcp_rto_max_ms", config.max_rto.as_millis().to_string()),
        ];
        match script.variant.as_str() {
            // No tail loss probes, F-RTO or RACK.
            "sack" | "newreno" | "reno" => settings.extend([
                Setting("tcp_early_retrans", "0".to_owned()),
                Setting("tcp_frto", "0".to_owned()),
                Setting("tcp_recovery", "0".to_owned()),
            ]),
            "linux" | "rack" => {}
            other => return Err(format!("the kernel has no variant {other}")),
        }
        for option in &script.options {
            match option.as_str() {
                "sack" | "dsack" | "timestamps" | "ecn" | "nagle" | "mss" | "min_rto" | "max_rto" | "idle_restart"
                | "user_timeout" | "keep_alive" => {}
                "max_burst" if config.max_burst.is_none() => {}
                "simultaneous_open" if config.simultaneous_open => {}
                "receive_buffer" if matches!(config.receive_buffer, Capacity::Bytes(_)) => {}
                other => return Err(format!("the kernel has no option {other} = ... for a connection")),
            }
        }
        Ok(settings)
    }

    fn apply(&self) -> io::Result<()> {
        match std::fs::write(format!("/proc/sys/net/ipv4/{}", self.0), &self.1) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()), // an older kernel
        }
    }
}

/// The kernel with one connection.
struct Kernel {
    device: SyncDevice,
    clock: Clock,
    start: Instant,
    /// Not opened yet, connected, or listening.
    socket: Option<OwnedFd>,
    listens: bool,
    /// The kernel's initial sequence number, once it is known.
    isn: Option<u32>,
    /// Its timestamp clock minus that of the script.
    clock_offset: Option<u32>,
    /// No quick ACKs, or those of the script's variant.
    delays_acks: bool,
}

impl Kernel {
    fn new(script: &Script, settings: Vec<Setting>) -> io::Result<Kernel> {
        let congestion = if script.variant == "linux" || script.variant == "rack" { "cubic" } else { "reno" };
        let (hand_over, made) = mpsc::channel();
        thread::Builder::new().name("namespace of a script".to_owned()).spawn(move || {
            // The receiver waits for the answer.
            let _ = hand_over.send(Kernel::enter(&settings));
        })?;
        let (device, socket) = made.recv().map_err(|_| io::Error::other("the namespace's thread died"))??;
        setsockopt(&socket, sockopt::TcpCongestion, &congestion.to_owned().into())?;
        Kernel::set_options(&socket, script)?;
        let clock = Clock::start();
        let start = clock.now();
        Ok(Kernel {
            device,
            clock,
            start,
            socket: Some(socket),
            listens: false,
            isn: None,
            clock_offset: None,
            delays_acks: script.variant == "linux",
        })
    }

    /// Makes the namespace, its device and a socket, which keeps the namespace when this thread has ended.
    fn enter(settings: &[Setting]) -> io::Result<(SyncDevice, OwnedFd)> {
        let device = namespace::enter(IpAddr::V4(LOCAL), IpAddr::V4(REMOTE))?;
        settings.iter().try_for_each(Setting::apply)?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        Ok((device, socket(AddressFamily::Inet, SockType::Stream, flags, None)?))
    }

    fn set_options(socket: &OwnedFd, script: &Script) -> io::Result<()> {
        let config = &script.config;
        setsockopt(socket, sockopt::ReuseAddr, &true)?;
        setsockopt(socket, sockopt::SndBuf, &(1 << 20))?;
        setsockopt(socket, sockopt::TcpNoDelay, &!config.nagle)?;
        let has = |option: &str| script.options.iter().any(|known| known == option);
        if has("mss") {
            set_number(socket, libc::TCP_MAXSEG, i32::from(config.mss))?;
        }
        if has("user_timeout") {
            set_number(socket, libc::TCP_USER_TIMEOUT, config.user_timeout.as_millis() as i32)?;
        }
        if has("receive_buffer") {
            // The kernel doubles it, and uses the half for its bookkeeping.
            setsockopt(socket, sockopt::RcvBuf, &(config.receive_buffer_size().0 as usize))?;
        }
        if let Some(keep_alive) = &config.keep_alive {
            setsockopt(socket, sockopt::KeepAlive, &true)?;
            let seconds = |time: Duration| (time.as_millis() / 1000).max(1) as i32;
            set_number(socket, libc::TCP_KEEPIDLE, seconds(keep_alive.idle))?;
            set_number(socket, libc::TCP_KEEPINTVL, seconds(keep_alive.interval))?;
            set_number(socket, libc::TCP_KEEPCNT, i32::try_from(keep_alive.probes).unwrap_or(i32::MAX))?;
        }
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        self.clock.now().since(self.start)
    }

    fn endpoints() -> Endpoints {
        let address = |ip: Ipv4Addr, port| SocketAddr::new(IpAddr::V4(ip), port);
        Endpoints { source: address(REMOTE, REMOTE_PORT), destination: address(LOCAL, LOCAL_PORT) }
    }

    /// A TCP segment that waits in the device.
    fn take(&mut self) -> Result<Option<Segment>, String> {
        let mut packet = vec![0; usize::from(MTU) + 64];
        loop {
            match self.device.recv(&mut packet) {
                Ok(n) => {
                    if let Ok(decoded) = Decoded::read(&packet[..n]) {
                        return Ok(Some(self.relative(&decoded.segment)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn relative(&mut self, segment: &Segment) -> Segment {
        if segment.flags.has(Flags::SYN) {
            self.isn = Some(segment.seq.0);
        }
        let isn = self.isn.unwrap_or(0);
        let mut relative = shifted(segment, isn.wrapping_neg(), PEER_ISN.wrapping_neg());
        if let Some(timestamps) = &mut relative.options.timestamps {
            let now = CLOCK_START_MS.wrapping_add(self.elapsed().as_millis() as u32);
            let offset = *self.clock_offset.get_or_insert(timestamps.val.wrapping_sub(now));
            timestamps.val = timestamps.val.wrapping_sub(offset);
        }
        relative
    }

    /// Acknowledges as later in a connection: at the beginning the kernel acknowledges every segment at once. So does the
    /// variant `linux`.
    fn delay_acks(&mut self) {
        let is_open = self.info().is_some_and(|info| info.tcpi_state == ESTABLISHED);
        if let Some(socket) = self.socket.as_ref().filter(|_| is_open && !self.delays_acks) {
            self.delays_acks = set_number(socket, libc::TCP_QUICKACK, 0).is_ok();
        }
    }

    /// The connection's socket: of a passive open the accepted one, if there is one.
    fn accept(&mut self) {
        if !self.listens {
            return;
        }
        let Some(listener) = &self.socket else { return };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        if let Ok(accepted) = accept4(listener.as_raw_fd(), flags) {
            #[expect(unsafe_code, reason = "accept4 returns a number")]
            // SAFETY: accept4 has just created the descriptor, and nothing else owns it.
            let accepted = unsafe { OwnedFd::from_raw_fd(accepted) };
            self.socket = Some(accepted);
            self.listens = false;
        }
    }

    fn open(&mut self, call: Call) -> Result<(), Errno> {
        let Some(socket) = &self.socket else { return Err(Errno::EBADF) };
        bind(socket.as_raw_fd(), &SockaddrIn::from(std::net::SocketAddrV4::new(LOCAL, LOCAL_PORT)))?;
        if call == Call::Listen {
            self.listens = true;
            return listen(socket, Backlog::new(8)?);
        }
        match connect(socket.as_raw_fd(), &SockaddrIn::from(std::net::SocketAddrV4::new(REMOTE, REMOTE_PORT))) {
            Err(Errno::EINPROGRESS) => Ok(()),
            other => other,
        }
    }

    fn info(&self) -> Option<libc::tcp_info> {
        let socket = self.socket.as_ref()?.as_raw_fd();
        let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
        #[expect(unsafe_code, reason = "nix has no TCP_INFO")]
        // SAFETY: the structure consists of numbers, for which zero is valid, and the kernel writes at most its length.
        let info = unsafe {
            let mut info: libc::tcp_info = std::mem::zeroed();
            let to = (&raw mut info).cast();
            let done = libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut len);
            (done == 0).then_some(info)
        };
        info
    }

    fn state(&self, expected: Value) -> Option<Value> {
        let Some(info) = self.info() else { return Some(Value::Word("closed")) };
        let names = [
            "established",
            "syn-sent",
            "syn-received",
            "fin-wait-1",
            "fin-wait-2",
            "time-wait",
            "closed",
            "close-wait",
            "last-ack",
            "listen",
            "closing",
        ];
        let found = *names.get(usize::from(info.tcpi_state).checked_sub(1)?)?;
        match (found, expected) {
            // A listening socket does not show the connections that are being opened, nor a closed one TIME-WAIT.
            ("listen", Value::Word("syn-received")) | ("closed", Value::Word("time-wait")) => None,
            _ => Some(Value::Word(found)),
        }
    }

    fn close_reason(&self, expected: Value) -> Option<Value> {
        let socket = self.socket.as_ref()?;
        match nix::sys::socket::getsockopt(socket, sockopt::SocketError).ok()? {
            0 if expected == Value::Word("finished") || expected == Value::Word("aborted") => None,
            0 => Some(Value::Word("no")),
            libc::ECONNREFUSED => Some(Value::Word("refused")),
            libc::ECONNRESET | libc::EPIPE => Some(Value::Word("reset")),
            libc::ETIMEDOUT => Some(Value::Word("timed-out")),
            _ => None,
        }
    }
}

fn set_number(socket: &OwnedFd, option: i32, value: i32) -> io::Result<()> {
    let len = size_of::<i32>() as libc::socklen_t;
    let from = (&raw const value).cast();
    #[expect(unsafe_code, reason = "nix does not have all of these options")]
    // SAFETY: the kernel reads a number of the given length, which lives until the call returns.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, from, len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Subject for Kernel {
    fn next_sent(&mut self, until: Duration) -> Result<Option<(Duration, Segment)>, String> {
        loop {
            if let Some(segment) = self.take()? {
                return Ok(Some((self.elapsed(), segment)));
            }
            if self.elapsed() >= until {
                return Ok(None);
            }
            #[expect(unsafe_code, reason = "the device owns its descriptor")]
            // SAFETY: the descriptor is open for as long as the device.
            let readable = unsafe { BorrowedFd::borrow_raw(self.device.as_raw_fd()) };
            self.clock.wait(self.start + until, &[readable]).map_err(|error| error.to_string())?;
        }
    }

    fn deliver(&mut self, segment: &Segment) -> Result<(), String> {
        self.accept();
        self.delay_acks();
        let mut absolute = shifted(segment, PEER_ISN, self.isn.unwrap_or(0));
        if let Some(Timestamps { ecr, .. }) = absolute.options.timestamps.as_mut().filter(|t| t.ecr > 0) {
            *ecr = ecr.wrapping_add(self.clock_offset.unwrap_or(0));
        }
        let mut packet = Vec::new();
        encode(Kernel::endpoints(), &absolute, &vec![0; usize::from(segment.len)], &mut packet);
        self.device.send(&packet).map(drop).map_err(|error| error.to_string())
    }

    fn call(&mut self, call: Call) -> Result<(), String> {
        self.accept();
        let failed = |errno: Errno| format!("the call fails: {errno}");
        let Some(socket) = &self.socket else { return Err("the socket is closed".to_owned()) };
        match call {
            Call::Listen | Call::Connect => self.open(call).map_err(failed),
            Call::Write(n) => match send(socket.as_raw_fd(), &vec![0; n as usize], MsgFlags::MSG_NOSIGNAL) {
                Ok(sent) if sent as u64 == n => Ok(()),
                Ok(sent) => Err(format!("the socket takes {sent} of {n} bytes")),
                Err(errno) => Err(failed(errno)),
            },
            Call::Read(n) => {
                recv(socket.as_raw_fd(), &mut vec![0; n as usize], MsgFlags::empty()).map(drop).map_err(failed)
            }
            Call::Close if self.listens => {
                self.socket = None;
                Ok(())
            }
            Call::Close => shutdown(socket.as_raw_fd(), Shutdown::Write).map_err(failed),
            Call::Abort => {
                let linger = libc::linger { l_onoff: 1, l_linger: 0 };
                setsockopt(socket, sockopt::Linger, &linger).map_err(failed)?;
                self.socket = None;
                Ok(())
            }
        }
    }

    fn value(&mut self, variable: Variable, expected: Value) -> Result<Option<Value>, String> {
        self.accept();
        let switch = |on: bool| Value::Word(if on { "on" } else { "off" });
        let option = |bit: u8| self.info().map(|info| switch(info.tcpi_options & bit != 0));
        Ok(match variable {
            Variable::State => self.state(expected),
            Variable::Closed => self.close_reason(expected),
            Variable::Cwnd => {
                self.info().map(|info| Value::Number(u64::from(info.tcpi_snd_cwnd) * u64::from(info.tcpi_snd_mss)))
            }
            Variable::Ssthresh => self.info().map(|info| match info.tcpi_snd_ssthresh {
                0x7fff_ffff => Value::Word("none"),
                segments => Value::Number(u64::from(segments) * u64::from(info.tcpi_snd_mss)),
            }),
            Variable::Timestamps => option(1),
            Variable::Sack => option(2),
            Variable::Ecn => option(8),
            _ => None,
        })
    }

    fn tolerance(&self, waited: Duration) -> Duration {
        TOLERANCE + waited / SHARE
    }

    /// The kernel also pushes when a send buffer or half of the window is full.
    fn compares_push(&self) -> bool {
        false
    }
}
