use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { time: Duration::from_millis(300), of_flow: 20, of_all: 30 };

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A flow that is held, of packets with a length of 100. The handle of a packet is its sequence number in hundreds.
struct Flow(Resequencer<u8, u32>);

impl Flow {
    fn new() -> Flow {
        let mut flow = Flow(Resequencer::new(LIMITS));
        assert_eq!(flow.pass(0, 0, Some(0)), [0]);
        flow.0.flows.values_mut().for_each(super::flow::Flow::hold_from_now);
        flow
    }

    /// A packet arrives; returns those that go on.
    fn pass(&mut self, ms: u64, number: u32, timestamp: Option<u32>) -> Vec<u32> {
        let header = TcpHeader { seq: number * 100, len: 100, timestamp, ..TcpHeader::default() };
        let mut out = Vec::new();
        self.0.on_packet(at(ms), 1, header, number, &mut out);
        out
    }

    fn wait(&mut self, ms: u64) -> Vec<u32> {
        let mut out = Vec::new();
        self.0.on_timer(at(ms), &mut out);
        out
    }
}

#[test]
fn early_packets_wait_for_late_ones() {
    let mut flow = Flow::new();
    assert!(flow.pass(1, 3, Some(3)).is_empty());
    assert!(flow.pass(2, 2, Some(2)).is_empty());
    assert_eq!(flow.pass(9, 1, Some(1)), [1, 2, 3]);
    assert_eq!(flow.pass(10, 4, Some(4)), [4]);
    assert_eq!((flow.0.held(), flow.0.deadline()), (0, Instant::NEVER));
    assert_eq!((flow.0.counts().held, flow.0.counts().late, flow.0.counts().given_up), (2, 2, 0));
}

#[test]
fn the_wait_is_learned_and_each_gap_has_its_own() {
    let mut flow = Flow::new();
    assert!(flow.pass(0, 2, None).is_empty());
    assert_eq!(flow.0.deadline(), at(300)); // nothing is known yet
    assert_eq!(flow.pass(10, 1, None), [1, 2]);
    assert!(flow.pass(20, 4, None).is_empty() && flow.pass(25, 6, None).is_empty());
    let wait = flow.0.deadline().since(at(20));
    assert!(wait > Duration::from_millis(20) && wait < Duration::from_millis(25), "{wait}");
    assert_eq!(flow.wait(44), [4]);
    assert_eq!(flow.wait(49), [6]);
    assert_eq!(flow.pass(60, 3, None), [3]);
    assert_eq!(flow.pass(60, 7, None), [7]);
}

#[test]
fn a_retransmission_passes_behind_what_is_held() {
    let mut flow = Flow::new();
    assert!(flow.pass(1, 2, Some(2)).is_empty() && flow.pass(2, 3, Some(3)).is_empty());
    // The receiver would refuse 2 and 3 after it, because their timestamps are older.
    assert_eq!(flow.pass(90, 1, Some(90)), [2, 3, 1]);
    // A repetition of what is held does not overtake it either.
    assert!(flow.pass(91, 5, Some(91)).is_empty() && flow.pass(92, 6, Some(92)).is_empty());
    assert!(flow.pass(93, 5, Some(93)).is_empty());
    assert_eq!(flow.pass(94, 4, Some(90)), [4, 5, 6, 5]);
}

#[test]
fn data_that_arrives_twice_after_it_was_missing_is_evidence_but_a_copy_of_the_network_is_not() {
    let mut flow = Flow(Resequencer::new(LIMITS));
    for (ms, number, timestamp) in [(0, 0, 1), (1, 2, 3), (8, 1, 2), (20, 1, 20), (30, 3, 30), (31, 3, 30), (40, 5, 40)]
    {
        assert_eq!(flow.pass(ms, number, Some(timestamp)), [number]);
    }
    assert_eq!(flow.0.counts().spurious, 1);
    // The retransmission comes first, the late original afterwards, and then the network's copy of it.
    for (ms, timestamp) in [(90, 80), (120, 35), (125, 35)] {
        assert_eq!(flow.pass(ms, 4, Some(timestamp)), [4]);
    }
    let (_, state) = flow.0.flows().next().unwrap();
    assert_eq!((state.spurious, state.late, state.phase), (2, 2, Phase::Watched));
    assert!(state.wait > Some(Duration::from_millis(2 * 80)), "{state:?}");
}

#[test]
fn a_reset_releases_everything_and_a_syn_begins_anew() {
    let mut flow = Flow::new();
    assert!(flow.pass(1, 2, None).is_empty());
    let mut out = Vec::new();
    flow.0.on_packet(at(2), 1, TcpHeader { seq: 5, resets: true, ..TcpHeader::default() }, 99, &mut out);
    assert_eq!(out, [2, 99]);
    assert_eq!((flow.0.held(), flow.0.flows().count()), (0, 0));
    let mut flow = Flow::new();
    assert!(flow.pass(1, 2, None).is_empty());
    out.clear();
    flow.0.on_packet(at(2), 1, TcpHeader { seq: 9_000, len: 1, opens: true, ..TcpHeader::default() }, 99, &mut out);
    assert_eq!(out, [2, 99]);
    assert_eq!(flow.0.flows().next().map(|(_, state)| state.phase), Some(Phase::Watched));
}

#[test]
fn sequence_numbers_wrap_around() {
    let mut resequencer = Resequencer::new(LIMITS);
    let mut out = Vec::new();
    let header = |n: u32| TcpHeader { seq: n.wrapping_mul(100).wrapping_sub(250), len: 100, ..TcpHeader::default() };
    resequencer.on_packet(at(0), 1_u8, header(0), 0, &mut out);
    resequencer.flows.values_mut().for_each(super::flow::Flow::hold_from_now);
    for n in [2, 4, 3, 1] {
        resequencer.on_packet(at(n.into()), 1, header(n), n, &mut out);
    }
    assert_eq!(out, [0, 1, 2, 3, 4]);
}

/// A packet: how long after the one before it, its flow, its number, and whether it has a timestamp.
type Sent = (u64, u8, u32, bool);

/// What went on: time of arrival, time of departure, flow, number, and the place in the order of arrival.
struct Gone {
    arrived: Instant,
    left: Instant,
    flow: u8,
    number: u32,
    place: usize,
}

/// Sends packets through flows that are held. Checks the limits at each step.
fn through(packets: &[Sent]) -> Vec<Gone> {
    let mut resequencer: Resequencer<u8, usize> = Resequencer::new(LIMITS);
    let (mut now, mut gone, mut arrivals) = (at(0), Vec::new(), Vec::new());
    for (place, &(gap, flow, number, timed)) in packets.iter().enumerate() {
        now = now + Duration::from_millis(gap);
        arrivals.push((now, flow, number));
        let mut out = Vec::new();
        let mut note = |left: Instant, out: &mut Vec<usize>| {
            gone.extend(out.drain(..).map(|place| {
                let (arrived, flow, number) = arrivals[place];
                Gone { arrived, left, flow, number, place }
            }));
        };
        while resequencer.deadline() <= now {
            let deadline = resequencer.deadline();
            resequencer.on_timer(deadline, &mut out);
            note(deadline, &mut out);
        }
        let timestamp = timed.then_some(now.as_nanos() as u32 >> 20);
        let header = TcpHeader { seq: number * 100, len: 100, timestamp, ..TcpHeader::default() };
        resequencer.on_packet(now, flow, header, place, &mut out);
        note(now, &mut out);
        resequencer.flows.values_mut().for_each(super::flow::Flow::hold_from_now);
        assert!(resequencer.held() <= LIMITS.of_all);
        assert!(resequencer.flows.values().all(|flow| flow.held() <= LIMITS.of_flow));
        assert_eq!(resequencer.held(), resequencer.flows.values().map(super::flow::Flow::held).sum::<usize>());
        assert_eq!(resequencer.held() + gone.len(), place + 1);
    }
    let mut out = Vec::new();
    resequencer.release_all(&mut out);
    gone.extend(out.into_iter().map(|place| {
        let (arrived, flow, number) = arrivals[place];
        Gone { arrived, left: now, flow, number, place }
    }));
    gone
}

proptest! {
    #[test]
    fn everything_goes_on_once_in_time_and_not_more_disordered(
        packets in vec((0_u64..40, 0_u8..3, 0_u32..60, any::<bool>()), 0..200),
    ) {
        let gone = through(&packets);
        let mut places: Vec<usize> = gone.iter().map(|gone| gone.place).collect();
        places.sort_unstable();
        prop_assert!(places.into_iter().eq(0..packets.len()));
        for one in &gone {
            prop_assert!(one.left.since(one.arrived) <= LIMITS.time);
        }
        let is_first = |one: &Gone| !packets[..one.place].iter().any(|p| (p.1, p.2) == (one.flow, one.number));
        let firsts: Vec<&Gone> = gone.iter().filter(|one| is_first(one)).collect();
        for (i, later) in firsts.iter().enumerate() {
            for earlier in &firsts[..i] {
                // Two packets of a flow change places only if that restores their order.
                let changed = earlier.flow == later.flow && earlier.place > later.place;
                prop_assert!(!changed || earlier.number < later.number, "{} {}", earlier.place, later.place);
            }
        }
    }
}
