//! The running proxy: requests, signals, the end.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reknit_config::KeyError;
use reknit_host::RealTime;
use reknit_net::{Composition, Device, KeepAlive, Network, SocketOptions, TcpForwarder, TcpRequest};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::dial;
use crate::leftovers::Lock;
use crate::marks::Marks;
use crate::metrics::{self, Counters, Labelled};
use crate::observe::Observer;
use crate::refusals::{Refusal, Refusals};
use crate::relay::{Leg, Relayed, relay};
use crate::settings::{BadLeg, Listener, Settings};
use crate::steering::{self, DEVICE, Machine, PortClasses};
use reknit_host::service::{self, Line, Plan, Step, clock};

/// The most requests that wait to be looked at. Clients beyond them repeat their SYN.
const MAX_REQUESTS: usize = 4096;
/// The most connections that are being opened at the same time by clients whose address may be forged: for each of them, there is
/// one to the server. Further SYNs are answered with a cookie first.
const MAX_UNPROVEN: usize = 256;
/// How long a server may take to accept.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// The kernel's address on the device, and the network's. Nothing is sent from them.
const KERNEL: Ipv4Addr = Ipv4Addr::new(169, 254, 114, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(169, 254, 114, 2);
const OURS_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0x726b, 2);
/// The variant on the leg that does not reorder, where that also uses reknit's TCP.
const NEAR_VARIANT: &str = "linux";

/// A listener that runs.
struct Entry {
    listener: Listener,
    variant: String,
    options: SocketOptions,
    counters: Arc<Counters>,
}

/// What tasks share.
struct Shared {
    network: Network,
    marks: Marks,
    /// The options of sockets on the leg that does not reorder.
    near: SocketOptions,
    unproven: Arc<Semaphore>,
    refusals: Refusals,
    observer: Observer,
    current: Mutex<Current>,
}

/// What a reload changes.
struct Current {
    settings: Settings,
    entries: Vec<Arc<Entry>>,
}

/// The commands that [`run`] would execute.
///
/// # Errors
/// If this machine is not ready for them.
pub fn dry_run(settings: &Settings) -> Result<String, String> {
    let plan = steering::plan(settings, Marks::new(0), &Machine::examine(settings)?);
    let device = format!("ip tuntap add {DEVICE} mode tun    # removed when the proxy ends, however it ends\n");
    Ok(format!("{device}{plan}"))
}

/// Runs until SIGTERM or SIGINT. `load` reads the settings, and again after SIGHUP.
///
/// # Errors
/// One line: what could not be set up.
pub fn run(load: impl Fn() -> Result<Settings, String>) -> Result<(), String> {
    let settings = load()?;
    let lock = Lock::take()?;
    if lock.clean() {
        Line::new("cleaned").with("what", "rules of a killed instance").write();
    }
    let machine = Machine::examine(&settings)?; // with the settings as they were before the killed instance
    let marks = lock.marks()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| text(&error))?;
    let _punctual = RealTime::begin(); // late packets would lower the rate of senders that pace
    runtime.block_on(serve(&load, settings, &machine, &lock, marks))
}

fn text(error: &io::Error) -> String {
    reknit_config::without_numbers(&error.to_string()).into_owned()
}

async fn serve(
    load: &impl Fn() -> Result<Settings, String>,
    settings: Settings,
    machine: &Machine,
    lock: &Lock,
    marks: Marks,
) -> Result<(), String> {
    let metrics = service::bind(settings.metrics)?;
    let mut signals = Signals::new().map_err(|error| text(&error))?;
    let network = start(&settings).map_err(|error| text(&error))?;
    let plan = steering::plan(&settings, marks, machine);
    lock.promise(&plan)?;
    let applied = plan.apply()?;
    let shared = Arc::new(Shared {
        network: network.clone(),
        marks,
        near: options(composition(NEAR_VARIANT)),
        unproven: Arc::new(Semaphore::new(MAX_UNPROVEN)),
        refusals: Refusals::default(),
        observer: Observer::start(&settings),
        current: Mutex::new(Current { entries: entries(&settings, &[]), settings }),
    });
    for entry in &shared.lock().entries {
        started(entry);
    }
    let for_metrics = shared.clone();
    service::serve(metrics, move || for_metrics.metrics());
    let forwarder = TcpForwarder::new(&network);
    let ended = shared.accept(load, &plan, machine, (&forwarder, &mut signals)).await;
    shared.drain(&forwarder, &mut signals).await;
    drop(applied);
    lock.forget();
    ended.map_err(|error| text(&error))
}

fn started(entry: &Entry) {
    let Listener { listen, to, .. } = &entry.listener;
    let to = to.map_or_else(|| "where the client asks for".to_owned(), |to| to.to_string());
    Line::new("listening").with("listener", listen).with("to", to).with("variant", &entry.variant).write();
}

/// Creates the device and the network on it.
fn start(settings: &Settings) -> io::Result<Network> {
    let device = Device::create(DEVICE, KERNEL.into(), 32, settings.mtu, true)?;
    Network::builder(IpAddr::V4(OURS))
        .address(OURS_V6.into())
        .forward(MAX_REQUESTS)
        .stack_options(|options| options.max_memory = settings.memory)
        .start_on(device)
}

/// The parts of a variant whose name was checked.
fn composition(variant: &str) -> Arc<Composition> {
    Arc::new(reknit_variants::find(variant).map(|variant| (variant.compose)()).unwrap_or_default())
}

/// Options of the sockets of a variant. Peers that are gone are noticed. The send buffer does not begin small and grow with the
/// window: while a late segment is missing, it holds several windows of data that arrived after it, and a sender with BBR that
/// runs out of data does not raise its rate.
fn options(variant: Arc<Composition>) -> SocketOptions {
    let mut options = SocketOptions::of(variant);
    options.send_buffer = options.largest_send_buffer;
    let [idle, interval] =
        [dial::KEEP_ALIVE_IDLE, dial::KEEP_ALIVE_INTERVAL].map(|s| reknit_units::Duration::from_secs(s.into()));
    options.config.keep_alive = Some(KeepAlive { idle, interval, probes: dial::KEEP_ALIVE_PROBES });
    options
}

/// The listeners, with the counters that they had before.
fn entries(settings: &Settings, before: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
    let counters: BTreeMap<String, Arc<Counters>> =
        before.iter().map(|entry| (entry.listener.label(), entry.counters.clone())).collect();
    let entry = |listener: &Listener| {
        let variant = settings.variant_of(listener).to_owned();
        let counters = counters.get(&listener.label()).cloned().unwrap_or_default();
        Arc::new(Entry { options: options(composition(&variant)), listener: listener.clone(), variant, counters })
    };
    settings.listeners.iter().map(entry).collect()
}

/// The signals that are handled.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        let [terminate, interrupt, hang_up] =
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
        Ok(Signals { terminate: terminate?, interrupt: interrupt?, hang_up: hang_up? })
    }

    async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn classes(&self) -> Option<PortClasses> {
        PortClasses::for_settings(&self.lock().settings)
    }

    /// Takes requests until a signal.
    async fn accept(
        self: &Arc<Shared>,
        load: &impl Fn() -> Result<Settings, String>,
        plan: &Plan,
        machine: &Machine,
        (forwarder, signals): (&TcpForwarder, &mut Signals),
    ) -> io::Result<()> {
        loop {
            tokio::select! {
                request = forwarder.next() => self.on_request(request?),
                _ = signals.terminate.recv() => return Ok(()),
                _ = signals.interrupt.recv() => return Ok(()),
                _ = signals.hang_up.recv() => self.reload(load, plan, machine),
            }
        }
    }

    /// Reads the settings again. Open connections go on.
    fn reload(&self, load: &impl Fn() -> Result<Settings, String>, plan: &Plan, machine: &Machine) {
        match load().and_then(|settings| self.replace(settings, plan, machine)) {
            Ok(()) => Line::new("reloaded").with("listeners", self.lock().entries.len()).write(),
            Err(error) => Line::new("reload").with("error", error).write(),
        }
    }

    fn replace(&self, settings: Settings, plan: &Plan, machine: &Machine) -> Result<(), String> {
        let mut current = self.lock();
        let refuse = |key: &str, what: &str| {
            let message = format!(
                "{what} needs a restart; nothing was applied. Only listeners, variants, max_connections and drain change \
                 without one"
            );
            Err(KeyError::new(key, message).at(&settings.file).to_string())
        };
        if let Some(key) = settings.fixed_key(&current.settings) {
            return refuse(key, "another value");
        }
        let is_rule = |step: &&Step| !matches!(step, Step::Nft(_));
        let next = steering::plan(&settings, self.marks, machine);
        if !plan.steps.iter().filter(is_rule).eq(next.steps.iter().filter(is_rule)) {
            return refuse("listeners", "adding the first or removing the last one of IPv4 or IPv6");
        }
        if Machine::examine(&settings)?.has_local != machine.has_local {
            return refuse("listeners", "adding the first or removing the last one with an address of this machine");
        }
        Step::Nft(steering::rules(&settings, self.marks, machine)).execute()?;
        self.observer.follow(&settings);
        *current = Current { entries: entries(&settings, &current.entries), settings };
        Ok(())
    }

    fn on_request(self: &Arc<Shared>, request: TcpRequest) {
        let current = self.lock();
        let Some(i) = current.settings.listener_for(request.local_addr()) else {
            return request.ignore(); // of a listener that a reload has removed
        };
        if let Some(refusal) = self.refusals.find(clock::now(), (request.peer_addr(), request.local_addr())) {
            return refusal.tell(request);
        }
        let (shared, entry) = (self.clone(), current.entries[i].clone());
        let permit = self.unproven.clone().try_acquire_owned().ok();
        if permit.is_none() && !request.request().answers_cookie {
            Counters::add(&entry.counters.cookies, 1);
            let _ = request.answer_with_cookie(self.towards_client(&entry)); // if the client has given up, it needs no answer
            return;
        }
        tokio::spawn(async move {
            let open = Open::new(&entry.counters);
            shared.connect(&entry, request, permit).await;
            drop(open);
        });
    }

    /// The options of the sockets of a listener's clients.
    fn towards_client<'a>(&'a self, entry: &'a Entry) -> &'a SocketOptions {
        match entry.listener.bad_leg {
            BadLeg::Clients => &entry.options,
            BadLeg::Servers => &self.near,
        }
    }

    /// Connects to the server, and only then answers the client, unless with a cookie. `permit` is released once the client has
    /// completed the handshake.
    async fn connect(&self, entry: &Entry, request: TcpRequest, permit: Option<OwnedSemaphorePermit>) {
        let (client, asked) = (request.peer_addr(), request.local_addr());
        let server = entry.listener.to.unwrap_or(asked);
        match entry.listener.bad_leg {
            BadLeg::Clients => {
                let dialled = dial::by_kernel(&entry.listener, client, server, self.marks.out(), self.classes());
                let Some(upstream) = self.answered(entry, request, server, dialled).await else { return };
                self.carry(entry, upstream, permit, server, asked).await;
            }
            BadLeg::Servers => {
                let dialled = dial::by_network(&self.network, client, server, &entry.options);
                let Some(upstream) = self.answered(entry, request, server, dialled).await else { return };
                self.carry(entry, upstream, permit, server, asked).await;
            }
        }
    }

    /// The connection to the server, with the request. If there is none, the client learns why.
    async fn answered<S>(
        &self,
        entry: &Entry,
        request: TcpRequest,
        server: SocketAddr,
        dialled: impl Future<Output = io::Result<S>>,
    ) -> Option<(TcpRequest, S)> {
        let (client, asked) = (request.peer_addr(), request.local_addr());
        let error = match tokio::time::timeout(CONNECT_LIMIT, dialled).await {
            Ok(Ok(upstream)) => return Some((request, upstream)),
            Ok(Err(error)) => error,
            Err(_) => io::ErrorKind::TimedOut.into(),
        };
        let refusal = Refusal::of(error.kind());
        if let Some(refusal) = refusal {
            self.refusals.add(clock::now(), (client, asked), refusal);
            refusal.tell(request);
        } else {
            request.ignore();
        }
        let counter = match refusal {
            Some(Refusal::Reset) => &entry.counters.refused,
            Some(Refusal::Icmp(_)) => &entry.counters.unreachable,
            None => &entry.counters.unanswered,
        };
        Counters::add(counter, 1);
        line(entry, client, server).with("error", text(&error)).write();
        None
    }

    /// Answers the client, and passes data on until both sides have ended.
    async fn carry<S: Leg>(
        &self,
        entry: &Entry,
        (request, upstream): (TcpRequest, S),
        permit: Option<OwnedSemaphorePermit>,
        server: SocketAddr,
        asked: SocketAddr,
    ) {
        let (client, began) = (request.peer_addr(), clock::now());
        let downstream = match request.accept_with(self.towards_client(entry)).await {
            Ok(downstream) => downstream,
            Err(error) => {
                upstream.reset_on_drop();
                return failed(entry, client, server, &error);
            }
        };
        drop(permit);
        Counters::add(&entry.counters.opened, 1);
        let mut relayed = Relayed::default();
        let mut ended = Ok(());
        if let Some(header) = dial::header(&entry.listener, client, asked) {
            ended = upstream.try_write(&header).map(drop); // the first bytes on the connection: they fit
        }
        if ended.is_ok() {
            ended = relay(&downstream, &upstream, &mut relayed).await;
        }
        if ended.is_ok() {
            ended = downstream.closed().await;
        }
        Counters::add(&entry.counters.to_server, relayed.to_server);
        Counters::add(&entry.counters.to_client, relayed.to_client);
        match ended {
            Ok(()) => Line::new("closed")
                .with("listener", entry.listener.label())
                .with("client", client)
                .with("server", server)
                .with("to_server", relayed.to_server)
                .with("to_client", relayed.to_client)
                .with("seconds", format_args!("{:.3}", began.elapsed().as_secs_f64()))
                .write(),
            Err(error) => failed(entry, client, server, &error),
        }
    }

    /// Takes no further connections, and waits for the open ones: until they end, for the time in the settings, or for a second
    /// signal.
    async fn drain(self: &Arc<Shared>, forwarder: &TcpForwarder, signals: &mut Signals) {
        let (limit, closing, entries) = {
            let current = self.lock();
            let limit = crate::settings::to_std(current.settings.drain);
            (limit, steering::closing(&current.settings), current.entries.clone())
        };
        let _ = Step::Nft(closing).execute(); // if it fails, new connections are taken until the end
        let open = || entries.iter().map(|entry| entry.counters.open.load(Ordering::Relaxed)).sum::<u64>();
        Line::new("draining").with("connections", open()).write();
        let deadline = clock::now() + limit;
        while open() > 0 && clock::now() < deadline {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
                Ok(request) = forwarder.next() => self.on_request(request), // its SYN came before
                () = signals.end() => break,
            }
        }
        let left = open();
        let undelivered = self.network.shutdown(Duration::from_secs(1)).await;
        let undelivered = undelivered.map_or_else(|undelivered| undelivered.to_string(), |()| "nothing".to_owned());
        Line::new("ended").with("connections_reset", left).with("undelivered", undelivered).write();
    }

    fn metrics(&self) -> String {
        let entries = self.lock().entries.clone();
        let labelled = entries.iter().map(|entry| {
            let (listener, variant, counters) = (entry.listener.label(), entry.variant.as_str(), &*entry.counters);
            Labelled { listener, variant, counters, compared: self.observer.compare(&entry.listener) }
        });
        metrics::text(&labelled.collect::<Vec<_>>())
    }
}

fn failed(entry: &Entry, client: SocketAddr, server: SocketAddr, error: &io::Error) {
    Counters::add(&entry.counters.failed, 1);
    line(entry, client, server).with("error", text(error)).write();
}

fn line(entry: &Entry, client: SocketAddr, server: SocketAddr) -> Line {
    Line::new("failed").with("listener", entry.listener.label()).with("client", client).with("server", server)
}

/// Counts a connection as open.
struct Open<'a>(&'a Counters);

impl<'a> Open<'a> {
    fn new(counters: &'a Counters) -> Open<'a> {
        Counters::add(&counters.open, 1);
        Open(counters)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
