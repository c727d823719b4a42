//! Runs any program in real time, with the path as its only network connection.
//!
//! The program gets a network namespace whose only device is a TUN device. This process forwards packets between that and
//! a second TUN device through the [`Pipe`](reknit_path::Pipe)s of the path. The second device is outside, behind NAT; or in a
//! private namespace, where a server may run and from which this process relays connections to the outside with ordinary
//! sockets. The kernel does not segment or coalesce packets on such devices, so they are at most 1500 bytes.
//!
//! | module | responsibility |
//! |---|---|
//! | `bridge` | forwards packets between the devices |
//! | `way`, `meter`, `record` | one direction of the path, and what is measured at it; time is an argument |
//! | `session` | signals, the meter, the end of the command |
//! | `ends`, `children` | the threads in the namespaces, and the programs that they run |
//! | `namespaces`, `netlink`, `names` | devices, addresses, routes; what programs find in `/etc/resolv.conf` |
//! | `nat`, `leftovers`, `lock`, `places` | changes outside, and how they are undone, even after a crash |
//! | `relay`, `connections` | the uplink of a private outer end |
//! | `shell` | an interactive shell instead of a command |

mod bridge;
mod children;
mod connections;
mod direction;
mod ends;
pub(crate) mod leftovers;
mod lock;
mod meter;
mod names;
mod namespaces;
mod nat;
mod netlink;
mod places;
mod record;
mod relay;
mod session;
mod shell;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

use nix::sys::signal::Signal;
use nix::unistd::{Pid, geteuid};
use reknit_units::{Duration, Instant};
use tun_rs::SyncDevice;

use self::bridge::{Bridge, NamedCapture};
pub use self::children::Unacknowledged;
use self::connections::OpenConnections;
use self::direction::EmulatedDirection;
pub use self::direction::Stages;
use self::ends::{InnerNamespace, OuterNamespace};
use self::leftovers::{CleanupGuard, Instance};
pub use self::meter::Counts;
use self::names::Names;
use self::namespaces::Subnet;
pub use self::record::PathRecording;
use self::relay::{Gateway, Relay, Scope};
pub use self::session::Reading;
use self::session::{Session, Signals};
use crate::capture::CaptureFile;
use crate::clock::Clock;
use crate::namespace::TUN;
use crate::priority::RealTime;
use crate::punctuality::{TimingAccuracy, waited_for_cpu};

/// Capabilities that creating namespaces and translating addresses needs: `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`.
const NEEDED: [u32; 2] = [12, 21];

/// The uplink at the outer end of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Uplink {
    /// NAT: this machine forwards packets and translates their addresses. Needs root.
    Nat,
    /// The outer end is a separate namespace. This process relays traffic that is not for its server.
    Relay,
    /// The outer end is a separate namespace without an uplink.
    Nothing,
}

/// What to run.
#[derive(Debug)]
pub struct Spec {
    /// The path from the command to the outside.
    pub up: Stages,
    /// The path back.
    pub down: Stages,
    /// A short name of the path, for prompts.
    pub label: String,
    /// Seed of the path's random decisions.
    pub seed: u64,
    /// The command and its arguments; a shell if there are none.
    pub command: Vec<OsString>,
    /// A command for a shell at the outer end.
    pub server: Option<OsString>,
    /// The uplink of the outer end. Without it: `Nat` if that is available and there is no server, else `Relay`.
    pub outside: Option<Uplink>,
    /// Capture file of the inner end.
    pub capture: Option<PathBuf>,
    /// Capture file of the outer end.
    pub capture_outside: Option<PathBuf>,
    /// Record what happens to all packets.
    pub record: bool,
}

/// Notifications to the caller while the command runs.
pub struct Listener<'a> {
    /// The path is ready, and the command is about to start.
    pub ready: &'a mut dyn FnMut(Ready),
    /// Information for the user.
    pub note: &'a mut dyn FnMut(String),
    /// How often the meter is read, and what is called with the reading.
    pub meter: Option<(Duration, &'a mut dyn FnMut(Reading))>,
}

/// The path, from the view of programs inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// The address inside.
    pub inner: Ipv4Addr,
    /// The address of the outer end: of this machine, or of the server.
    pub outer: Ipv4Addr,
    /// The uplink.
    pub outside: Uplink,
    /// A server runs at the outer end.
    pub server: bool,
    /// A shell was started instead of a command.
    pub shell: bool,
}

/// The result of an emulation.
#[derive(Debug)]
pub struct Report {
    /// The command's exit code, as a shell gives it: 128 and the number of the signal that ended it.
    pub exit_code: u8,
    /// The default congestion control of the kernel's TCP inside, when the command ended; empty if it is not known.
    pub congestion_control: String,
    /// What was not acknowledged when the emulation ended.
    pub unacknowledged: Unacknowledged,
    /// How long the command had ended by then.
    pub waited: Duration,
    /// UDP packets from inside that were still on the path at the end: the other end does not get them.
    pub undelivered_udp: u64,
    /// How long it ran.
    pub elapsed: Duration,
    /// The counts, up and down.
    pub counts: [Counts; 2],
    /// Time from the first packet that left the path to the last, up and down.
    pub spans: [Duration; 2],
    /// How late half of the packets left the path.
    pub late_p50: Duration,
    /// How late the other packets were, and how busy the machine was.
    pub punctuality: TimingAccuracy,
    /// What happened to packets, up and down, if they were recorded.
    pub records: [Option<PathRecording>; 2],
}

/// Why it could not be run.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The machine does not allow it.
    #[error("{what}: {source}{}", advice(source))]
    SetUp {
        /// What could not be set up.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The command cannot be started.
    #[error("{}: {source}", command.display())]
    Command {
        /// Its name.
        command: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The server does not start.
    #[error("--server: the command {0}")]
    Server(io::Error),
    /// A capture file cannot be written.
    #[error("{option} {}: {source}", file.display())]
    Capture {
        /// The option that names it.
        option: &'static str,
        /// Its name.
        file: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// NAT was requested, which only root may set up.
    #[error("--outside nat: needs root; --outside relay does not")]
    NeedsRoot,
    /// A signal ended the wait for another emulation.
    #[error("{}: {signal} while waiting for the lock", file.display())]
    Interrupted {
        /// The signal.
        signal: Signal,
        /// The locked file.
        file: PathBuf,
    },
    /// Packets can no longer be forwarded.
    #[error("the emulated path: {0}")]
    Failed(io::Error),
}

impl EmulateError {
    /// The exit code that shells and `env` have for it: 127 if there is no such command, 126 if it cannot be run, 128 and the
    /// number of a signal.
    pub fn exit_code(&self) -> u8 {
        match self {
            EmulateError::Command { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            EmulateError::Command { .. } => 126,
            EmulateError::Interrupted { signal, .. } => u8::try_from(128 + *signal as i32).unwrap_or(1),
            _ => 1,
        }
    }
}

/// What to do about an error.
fn advice(error: &io::Error) -> &'static str {
    let opened = File::options().read(true).write(true).open(TUN);
    match (opened.map_err(|error| error.kind()), error.kind()) {
        (Err(io::ErrorKind::PermissionDenied), _) if !geteuid().is_root() => {
            "; only root may open /dev/net/tun: run reknit as root, or `sudo chmod 666 /dev/net/tun`"
        }
        (Err(_), _) => {
            "; /dev/net/tun cannot be opened: load the module (modprobe tun), or give the container the device (docs/guide/emulate.md)"
        }
        (Ok(_), io::ErrorKind::PermissionDenied) => {
            "; run reknit as root, or allow user namespaces (docs/guide/emulate.md#without-root)"
        }
        (Ok(_), _) => "",
    }
}

fn set_up(what: &'static str) -> impl Fn(io::Error) -> EmulateError {
    move |source| EmulateError::SetUp { what, source }
}

/// Runs the command to its end.
///
/// # Errors
/// If it cannot be started, or the machine does not allow what it needs.
pub fn run(spec: &Spec, listener: Listener<'_>) -> Result<Report, EmulateError> {
    let signals = Signals::take().map_err(set_up("signals"))?;
    let clock = Clock::start();
    let captures = [
        open("--pcap", spec.capture.as_deref(), clock)?,
        open("--pcap-outside", spec.capture_outside.as_deref(), clock)?,
    ];
    let Listener { ready, note, meter } = listener;
    let privileged = namespaces::has_capabilities(&NEEDED);
    for what in leftovers::clean() {
        note(format!("removed what a killed emulation had left: {what}"));
    }
    let outside = outside(spec, privileged, note)?;
    if !privileged {
        namespaces::enter_user_namespace().map_err(set_up("a user namespace"))?;
    }
    let mut setup = Setup::new(outside, spec.server.is_some())?;
    let ways = [&spec.up, &spec.down].map(|stages| EmulatedDirection::new(stages, spec.seed, spec.record));
    let mut bridge = Bridge::new(clock, setup.inner_device, setup.outer_device, ways, captures);
    bridge.relay = setup.relay;
    let mut environment = shell::environment(&spec.label);
    if let Some(line) = &spec.server {
        let outer = bridge.relay.as_ref().and_then(Relay::outer);
        let refuse = || io::Error::other("needs a private outer end");
        outer.ok_or_else(refuse).and_then(|outer| outer.serve(line, &environment)).map_err(EmulateError::Server)?;
    }
    let mut words = spec.command.clone();
    if words.is_empty() {
        words.push(shell::program());
        environment.extend(shell::prompt());
    }
    let (inner, outer) = (setup.subnet.inner(), setup.subnet.outer());
    ready(Ready { inner, outer, outside, server: spec.server.is_some(), shell: spec.command.is_empty() });
    let command = children::command(&words, &environment);
    let refuse = |source| EmulateError::Command { command: PathBuf::from(&words[0]), source };
    let process = setup.inner.launch(command).map_err(refuse)?;
    let began = clock.now();
    let mut session = Session {
        signals: &signals,
        command: Pid::from_raw(process.cast_signed()),
        ended: setup.inner.ended.clone(),
        idle: setup.inner.idle.clone(),
        hurry: setup.inner.hurry.clone(),
        began,
        meter,
        last: (began, Default::default()),
        stop_at: Instant::NEVER,
    };
    let waited_before = waited_for_cpu();
    let real_time = RealTime::begin();
    bridge.run(&mut session)?;
    drop(real_time);
    let waited = waited_for_cpu().saturating_sub(waited_before);
    conclude(bridge, setup.inner, &setup.relayed, Span { elapsed: clock.now().since(began), waited })
}

fn open(option: &'static str, file: Option<&Path>, clock: Clock) -> Result<Option<NamedCapture>, EmulateError> {
    let side = if option == "--pcap" { "inside" } else { "outside" };
    let open = |file: &Path| {
        let refuse = |source| EmulateError::Capture { option, file: file.to_owned(), source };
        let capture = CaptureFile::new(file, side, clock).map_err(refuse)?;
        Ok(NamedCapture { option, file: file.to_owned(), capture })
    };
    file.map(open).transpose()
}

/// The uplink if the user does not choose one.
fn outside(spec: &Spec, privileged: bool, note: &mut dyn FnMut(String)) -> Result<Uplink, EmulateError> {
    match spec.outside {
        Some(Uplink::Nat) if !privileged => return Err(EmulateError::NeedsRoot),
        Some(outside) => return Ok(outside),
        None => {}
    }
    let possible = privileged && nat::is_possible();
    if spec.server.is_some() || !possible {
        if spec.server.is_none() {
            let why = if privileged { "neither nft nor iptables is installed" } else { "not running as root" };
            note(format!("{why}, so connections to the outside are relayed (docs/guide/emulate.md#without-root)"));
        }
        return Ok(Uplink::Relay);
    }
    Ok(Uplink::Nat)
}

/// Everything around the bridge.
struct Setup {
    subnet: Subnet,
    inner: InnerNamespace,
    inner_device: SyncDevice,
    outer_device: SyncDevice,
    relay: Option<Relay>,
    relayed: OpenConnections,
    /// Undoes the changes outside when dropped.
    _undo: Option<CleanupGuard>,
}

impl Setup {
    fn new(outside: Uplink, has_server: bool) -> Result<Setup, EmulateError> {
        let instance = Instance::current();
        // Networks and names of devices are chosen one after the other.
        let lock = if outside == Uplink::Nat { Some(lock::lock()?) } else { None };
        let subnet = Subnet::choose().map_err(set_up("a network"))?;
        let names = Names::new(subnet, outside == Uplink::Nat);
        let gateway = Gateway {
            address: subnet.outer(),
            resolver: names.resolver.filter(|_| outside != Uplink::Nothing),
            loopback: outside == Uplink::Relay && !has_server,
        };
        let v6 = outside == Uplink::Nat && nat::reaches_v6();
        let (inner, inner_device) =
            InnerNamespace::start(subnet, names, v6).map_err(set_up("a network namespace with a TUN device"))?;
        if let Some(lock) = lock {
            let outer_device = namespaces::outer_device(subnet).map_err(set_up("a TUN device"))?;
            let name = outer_device.name().map_err(set_up("a TUN device"))?;
            let undo = nat::set_up(instance, subnet, &name, v6, lock).map_err(set_up("address translation"))?;
            let names_only = |_| Relay::new(gateway, Scope::Names);
            let relay = gateway.resolver.map(names_only).transpose().map_err(set_up("a relay"))?;
            return Ok(Setup {
                subnet,
                inner,
                inner_device,
                outer_device,
                relay,
                relayed: OpenConnections::default(),
                _undo: Some(undo),
            });
        }
        let (accepted, to_connect) = channel();
        let (outer, outer_device) = OuterNamespace::start(subnet, outside == Uplink::Relay, accepted)
            .map_err(set_up("a second network namespace with a TUN device"))?;
        let relayed = OpenConnections::default();
        connections::connect_all(to_connect, relayed.clone(), move |destination| gateway.target(destination))
            .map_err(set_up("a relay"))?;
        let scope = if outside == Uplink::Relay { Scope::Everything(outer) } else { Scope::Nothing(outer) };
        let relay = Relay::new(gateway, scope).map_err(set_up("a relay"))?;
        Ok(Setup { subnet, inner, inner_device, outer_device, relay: Some(relay), relayed, _undo: None })
    }
}

/// How long it took.
#[derive(Clone, Copy)]
struct Span {
    elapsed: Duration,
    /// How long the bridge was ready to run but had no processor.
    waited: Duration,
}

fn conclude(
    mut bridge: Bridge,
    inner: InnerNamespace,
    relayed: &OpenConnections,
    span: Span,
) -> Result<Report, EmulateError> {
    let ended = inner.join().map_err(EmulateError::Failed)?;
    if ended.unacknowledged.connections > 0 {
        relayed.reset_at_exit();
    }
    let counts = bridge.counts();
    let spans = [bridge.up.meter.span(), bridge.down.meter.span()];
    let undelivered_udp = bridge.up.udp_inside;
    bridge.settle();
    for capture in bridge.captures.into_iter().flatten() {
        capture.finish()?;
    }
    let refused = bridge.refused + ended.dropped;
    Ok(Report {
        exit_code: ended.code,
        congestion_control: ended.congestion_control,
        unacknowledged: ended.unacknowledged,
        waited: Duration::from_nanos(ended.waited.as_nanos() as u64),
        undelivered_udp,
        elapsed: span.elapsed,
        counts,
        spans,
        late_p50: bridge.lateness.quantile(0.5),
        punctuality: TimingAccuracy::new(&bridge.lateness, span.waited, span.elapsed, refused),
        records: [bridge.up.record, bridge.down.record],
    })
}
