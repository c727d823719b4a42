//! Other transports: this project's own connection as packets of bytes gives the results of a variant, and a transport with
//! only a window and a timer shows what is counted and how.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use reknit_path::{Phases, Profile};
use reknit_sim::{
    Counters, Endpoint, Ends, FlowSpec, Opening, RunResult, Scenario, Transmit, Transport, Transports, Workload, run,
    tcp_config,
};
use reknit_tcp::{Config, Connection, Identity, Output, SeqNum};
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::Composition;
use reknit_wire::{Decoded, Endpoints, encode};

/// A connection of this project as any other transport.
#[derive(Debug)]
struct OwnEnd {
    connection: Connection,
    endpoints: Endpoints,
    wake_at: Instant,
}

impl Endpoint for OwnEnd {
    fn write(&mut self, _: Instant, len: u64) {
        self.connection.write(Bytes(len));
        self.connection.close();
    }

    fn handle(&mut self, now: Instant, packet: &[u8]) {
        self.connection.on_segment(now, &Decoded::read(packet).unwrap().segment);
    }

    fn on_deadline(&mut self, now: Instant) {
        self.connection.on_timer(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let segment = match self.connection.poll(now) {
            Output::Send(segment) => segment,
            Output::WakeAt(at) => {
                self.wake_at = at;
                return None;
            }
            Output::Idle => {
                self.wake_at = Instant::NEVER;
                return None;
            }
        };
        let mut packet = Vec::new();
        encode(self.endpoints, &segment, &vec![0; usize::from(segment.len)], &mut packet);
        let start = self.connection.position_sent(segment.seq).unwrap_or(0);
        let data = Vec::from_iter((segment.len > 0).then(|| start..start + u64::from(segment.len)));
        Some(Transmit { size: Bytes(packet.len() as u64), packet, data })
    }

    fn deadline(&mut self, _: Instant) -> Instant {
        self.wake_at
    }

    fn received(&self) -> u64 {
        self.connection.received()
    }

    fn counters(&self) -> Counters {
        let stats = self.connection.send_stats();
        Counters { cuts: Some(stats.cuts.total()), undos: Some(stats.undos), timeouts: Some(stats.timeouts) }
    }
}

#[derive(Debug)]
struct Own {
    composition: Composition,
    config: Arc<Config>,
}

impl Transport for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn about(&self) -> &'static str {
        "reknit's TCP as packets of bytes"
    }

    fn reads_in_batches(&self) -> bool {
        false
    }

    fn open(&self, opening: &Opening) -> Ends {
        let address = |n: u8| ([10, 0, 0, n], 5000).into();
        let end = |open: fn(Instant, Arc<Config>, _, Identity) -> Connection, from, to| {
            let identity = Identity { isn: SeqNum(u32::MAX - 1000), timestamp_offset: 7 };
            let mut connection = open(opening.now, self.config.clone(), self.composition.build(), identity);
            connection.read_at_once();
            let endpoints = Endpoints { source: address(from), destination: address(to) };
            Box::new(OwnEnd { connection, endpoints, wake_at: Instant::NEVER })
        };
        Ends { sender: end(Connection::connect, 1, 2), receiver: end(Connection::listen, 2, 1) }
    }
}

fn scenario(path: &str, variant: &str) -> Scenario {
    scenario_with(path, &[], variant)
}

fn scenario_with(path: &str, set: &[&str], variant: &str) -> Scenario {
    let set: Vec<String> = set.iter().map(ToString::to_string).collect();
    let profile = Arc::new(Profile::load(path, &set).unwrap());
    let composition = (reknit_variants::find(variant).unwrap().compose)();
    let tcp = tcp_config(&profile).unwrap();
    let scenario = Scenario::bulk(profile, tcp, composition, Duration::from_secs(10), 3);
    Scenario { phases: Phases::Drawn, warm_up: Duration::from_secs(2), ..scenario }
}

/// The same scenario, whose sender and receiver are packets of bytes.
fn as_transport(scenario: &Scenario) -> Scenario {
    let composition = (*scenario.flows[0].sender).clone();
    let config = Arc::new(composition.configure(scenario.tcp.clone()));
    Scenario { transport: Some(Arc::new(Own { composition, config })), ..scenario.clone() }
}

/// Everything that both can know: not the causes of retransmissions and reductions. What PAWS discards has arrived, but the
/// variant's receiver does not count it.
fn known(result: &RunResult) -> Vec<impl PartialEq + std::fmt::Debug> {
    let flows = result.flows.iter().map(|flow| {
        let counts = [
            flow.send.sent.total(),
            flow.send.sent.retransmissions(),
            flow.send.cuts.total(),
            flow.send.undos,
            flow.send.timeouts,
            flow.receive.segments + flow.receive.paws_discards,
            flow.lost,
            flow.queue_drops,
            flow.lost_acks,
        ];
        (flow.delivered, flow.elapsed, flow.smss, counts)
    });
    flows.chain([(Bytes(result.packets), Duration::from_nanos(result.delayed), Bytes(0), [0; 9])]).collect()
}

#[test]
fn a_connection_as_packets_of_bytes_has_the_results_of_the_variant() {
    let mut recognised = (0, 0);
    for (path, variant, flows) in [
        ("two-paths-50ms", "reknit", 1),
        ("two-paths-50ms", "newreno", 2),
        ("lossy", "linux", 1),
        ("random-delay", "rack", 2),
    ] {
        let mut scenario = scenario(path, variant);
        scenario.flows = vec![scenario.flows[0].clone(); flows];
        let (own, other) = (run(&scenario), run(&as_transport(&scenario)));
        assert_eq!(known(&own), known(&other), "{variant} on {path}");
        for (own, other) in own.flows.iter().zip(&other.flows) {
            // To the variant's receiver, what PAWS discards has not arrived, and its retransmission is not spurious.
            let (own_spurious, spurious) = (own.spurious_retransmissions, other.spurious_retransmissions);
            let discards = own.receive.paws_discards;
            assert!(
                (own_spurious..=own_spurious + 2 * discards).contains(&spurious),
                "{variant} on {path}: {spurious}"
            );
            let (own_wait, wait) = (own.wait_p99.as_secs_f64(), other.wait_p99.as_secs_f64());
            let is_close = (own_wait - wait).abs() <= 0.02 * own_wait;
            assert!(is_close || discards > 0, "{variant} on {path}: {own_wait} {wait}");
            // Another transport does not say which packet a reduction was for.
            recognised = (recognised.0 + other.false_cuts, recognised.1 + own.false_cuts);
        }
    }
    assert!(recognised.1 > 20 && recognised.0.abs_diff(recognised.1) * 10 < recognised.1, "{recognised:?}");
}

#[test]
fn a_transfer_ends_when_all_of_it_has_been_received() {
    let mut scenario = scenario("clean", "sack");
    scenario.warm_up = Duration::ZERO;
    scenario.flows = vec![FlowSpec { workload: Workload::Transfer(Bytes(100_000)), ..scenario.flows[0].clone() }];
    let result = run(&as_transport(&scenario));
    let flow = &result.flows[0];
    assert_eq!((flow.delivered, flow.transactions), (Bytes(100_000), 1));
    assert_eq!(flow.completed, run(&scenario).flows[0].completed);
}

/// Sends a packet of 1000 bytes every 10 ms, in this order first, and never waits for an ACK.
#[derive(Debug, Default)]
struct Ticks {
    next: u64,
    first: VecDeque<u64>,
    at: Instant,
    sends: bool,
    arrived: BTreeSet<u64>,
}

impl Endpoint for Ticks {
    fn write(&mut self, now: Instant, _: u64) {
        (self.at, self.sends) = (now, true);
    }

    fn handle(&mut self, _: Instant, packet: &[u8]) {
        self.arrived.insert(u64::from_be_bytes(packet.try_into().unwrap()));
    }

    fn on_deadline(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if !self.sends || now < self.at {
            return None;
        }
        self.at = now + Duration::from_millis(10);
        let number = self.first.pop_front().unwrap_or(self.next);
        self.next = self.next.max(number + 1);
        let data = Vec::from_iter(Some(number * 1000..(number + 1) * 1000));
        Some(Transmit { packet: number.to_be_bytes().to_vec(), size: Bytes(1000), data })
    }

    fn deadline(&mut self, _: Instant) -> Instant {
        if self.sends { self.at } else { Instant::NEVER }
    }

    fn received(&self) -> u64 {
        1000 * self.arrived.iter().zip(0..).take_while(|(arrived, expected)| *arrived == expected).count() as u64
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

#[derive(Debug)]
struct Ticking(&'static [u64]);

impl Transport for Ticking {
    fn name(&self) -> &'static str {
        "ticking"
    }

    fn about(&self) -> &'static str {
        "a packet every 10 ms"
    }

    fn open(&self, _: &Opening) -> Ends {
        let sender = Ticks { first: self.0.iter().copied().collect(), ..Ticks::default() };
        Ends { sender: Box::new(sender), receiver: Box::<Ticks>::default() }
    }
}

fn ticks(order: &'static [u64], stages: &str) -> RunResult {
    let links = "[[forward]]\nkind = \"link\"\ndelay = \"50 ms\"\n[[reverse]]\nkind = \"link\"\ndelay = \"50 ms\"\n";
    let profile = Profile::parse("test", &format!("description = \"test\"\n{stages}\n{links}")).unwrap();
    let mut scenario = scenario("clean", "sack");
    scenario.profile = Arc::new(profile);
    (scenario.phases, scenario.warm_up) = (Phases::Fixed, Duration::ZERO);
    // The last packet that arrives is number 94, or 95 packets in all.
    scenario.duration = Duration::from_millis(995);
    scenario.transport = Some(Arc::new(Ticking(order)));
    run(&scenario)
}

#[test]
fn what_the_path_saw_is_counted() {
    let result = ticks(&[], "");
    let flow = &result.flows[0];
    assert_eq!((flow.delivered, flow.send.sent.total(), flow.receive.segments), (Bytes(95_000), 100, 95));
    assert_eq!((flow.send.sent.retransmissions(), flow.spurious_retransmissions, flow.packets()), (0, 0, 95));
    assert!(flow.unreported.cuts && flow.unreported.undos && flow.unreported.timeouts);

    let result = ticks(&[0, 1, 2, 2], "");
    let flow = &result.flows[0];
    assert_eq!((flow.send.sent.retransmissions(), flow.spurious_retransmissions, flow.receive.duplicates), (1, 1, 1));

    let script =
        |rule: &str| ticks(&[], &format!("[[forward]]\nkind = \"script\"\nrules = [{{ packet = 4, {rule} }}]"));
    let lost = script("action = \"drop\"");
    let flow = &lost.flows[0];
    assert_eq!((flow.delivered, flow.lost, flow.queue_drops, flow.lost_acks), (Bytes(3000), 1, 0, 0));

    let copied = script("action = \"duplicate\"");
    let flow = &copied.flows[0];
    assert_eq!((flow.delivered, flow.receive.duplicates, flow.spurious_retransmissions), (Bytes(95_000), 1, 0));

    // The next two packets wait for it, for 15 and 5 ms.
    let late = script("action = \"delay\", by = \"25 ms\"");
    let flow = &late.flows[0];
    assert_eq!((flow.delivered, flow.wait_p50), (Bytes(95_000), Duration::ZERO));
    assert!(flow.wait_p99.abs_diff(Duration::from_millis(15)) < Duration::from_micros(20), "{}", flow.wait_p99);
}

#[test]
fn transports_are_found_by_name() {
    let transports = Transports::new(vec![Arc::new(Ticking(&[]))]);
    assert!(transports.find("ticking").is_some() && transports.find("own").is_none());
    assert_eq!(transports, transports.clone());
    assert_ne!(transports, Transports::default());
}

/// A gateway cannot read the sequence numbers of these packets.
#[test]
fn a_gateway_with_a_given_difference_makes_branches_equal_for_any_transport() {
    let goodput = |set: &[&str]| {
        let result = run(&as_transport(&scenario_with("two-paths-200ms", set, "sack")));
        result.flows[0].delivered.0
    };
    let equal = goodput(&["forward.paths.paths.0.delay=250 ms"]);
    let shield = "forward.+={ kind = \"shield\", mode = \"equalise\", difference = \"200 ms\" }";
    let (made, without) = (goodput(&[shield]), goodput(&[]));
    assert!(made * 10 >= equal * 9 && made > 5 * without, "{made}, {equal} and {without}");
}
