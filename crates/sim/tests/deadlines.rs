//! A connection with data to send always has a deadline, and not a distant one, whatever the peer claims and however long
//! its answers take: nothing stands still for good.

use reknit_path::{Phases, Stream, StreamId};
use reknit_tcp::{Config, State};
use reknit_testkit::{Ack, TestSender, config, variant};
use reknit_units::{Duration, Segments};
use reknit_variants::VARIANTS;

const CASES: u64 = 12;
const STEPS: u32 = 60;
/// Ten years: no user timeout ends the connection before.
const LONG: Duration = Duration::from_secs(10 * 365 * 86_400);

/// A connection that is open for a while, with and without SACK and timestamps.
fn start(name: &str, case: u64, random: &mut Stream) -> TestSender {
    let options = Config {
        sack: !case.is_multiple_of(4),
        timestamps: case.is_multiple_of(2),
        user_timeout: LONG,
        max_burst: case.is_multiple_of(3).then_some(Segments(4)),
        ..config(1 + random.below(20))
    };
    let rtt_ms = [1, 40, 1000, 50_000_000][random.below(4) as usize];
    let mut s = TestSender::new(1000, &variant(name), options, rtt_ms);
    s.take();
    s
}

/// Any ACK: of what has arrived, or of what has not; SACKs and DSACKs of anything; a closed window.
fn claim(s: &TestSender, random: &mut Stream, cum: &mut u32, now_ms: u64) -> Ack {
    let info = s.info();
    let flight = (info.flight_size.0 / reknit_testkit::SMSS) as u32;
    if random.chance(0.4) {
        *cum += random.below(flight + 1);
    }
    let any = |random: &mut Stream| 1 + random.below(*cum + flight + 1).min(*cum + flight);
    let blocks = (0..random.below(3)).map(|_| {
        let first = any(random);
        (first, first + random.below(5))
    });
    let blocks: Vec<(u32, u32)> = blocks.filter(|(first, last)| *first > *cum + 1 && *last <= *cum + flight).collect();
    Ack {
        cum: *cum,
        blocks,
        dsack: random.chance(0.4).then(|| any(random)),
        ecr: random.chance(0.2).then(|| (10_000 + now_ms).saturating_sub(u64::from(random.below(1 << 30))) as u32),
        ece: random.chance(0.05),
        closed: random.chance(0.1),
        ..Ack::default()
    }
}

fn run(name: &str, case: u64) {
    let mut random = StreamId { seed: case, stage: 0, phases: Phases::Fixed }.stream(0);
    let mut s = start(name, case, &mut random);
    let (mut cum, mut now_ms, mut longest) = (0, s.now().since(s.zero()).as_millis(), Duration::from_secs(120));
    for step in 0..STEPS {
        let wait = [0, 1, 30, 500, 20_000, 50_000_000][random.below(if step % 8 == 0 { 6 } else { 5 }) as usize];
        now_ms += u64::from(random.below(wait + 1));
        longest = longest.max(Duration::from_millis(wait.into()) * 8);
        s.at(now_ms);
        s.take();
        let ack = claim(&s, &mut random, &mut cum, now_ms);
        s.deliver(&ack);
        s.take();
        let info = s.info();
        if info.state == State::Closed {
            return;
        }
        let deadline = s.connection.deadline();
        let srtt = info.srtt.unwrap_or_default();
        let at_most = s.now() + (longest + srtt * 8 + info.rto.unwrap_or(Duration::ZERO) * 64);
        assert!(deadline <= at_most, "{name}, case {case}, step {step}: {deadline:?} at {:?}: {info:?}", s.now());
        assert!(srtt <= Duration::from_millis(now_ms + 50_000_000), "{name}, case {case}, step {step}: {info:?}");
    }
}

#[test]
fn data_that_waits_has_a_deadline() {
    for variant in VARIANTS.iter().filter(|variant| !variant.is_simulated_only()) {
        for case in 0..CASES {
            run(variant.name, case);
        }
    }
}

/// Without timestamps, RR-TCP takes the mean of the round trips of a segment and its retransmission. Here a DSACK reports a
/// segment before the block around it is processed, because that covers more than one event may process.
#[test]
fn a_report_of_what_never_arrived_is_no_round_trip() {
    const FLIGHT: u32 = 5000;
    const LOST: u32 = 2500;
    let mut s = TestSender::new(1000, &variant("rr-taes"), config(FLIGHT), 100);
    s.take();
    for (ms, highest) in [(100, 3500), (150, FLIGHT), (151, FLIGHT)] {
        s.at(ms).deliver(&Ack { cum: 0, blocks: vec![(LOST + 1, highest)], ..Ack::default() });
        s.take();
    }
    s.at(160);
    let sent = s.take().len() as u64 + s.info().pipe.0 / reknit_testkit::SMSS;
    assert!(sent >= u64::from(LOST - 10), "all is sent again: {:?}", s.info());
    s.at(200).deliver(&Ack { cum: 0, blocks: vec![(2, FLIGHT)], dsack: Some(LOST - 100), ..Ack::default() });
    s.take();
    let srtt = s.info().srtt.unwrap();
    assert!(srtt < Duration::from_secs(1), "{srtt:?}");
    assert!(s.connection.deadline() <= s.now() + Duration::from_secs(60));
}

/// A window in so long a round trip is less than one bit per second.
#[test]
fn a_very_long_round_trip_is_paced_too() {
    for name in ["bbr", "bbr1"] {
        let patient = Config { user_timeout: LONG, initial_rto: Duration::from_secs(60), ..config(2) };
        let mut s = TestSender::new(1000, &variant(name), patient, 200_000_000);
        s.take();
        assert!(s.connection.deadline() <= s.now() + Duration::from_secs(240), "{name}: {:?}", s.connection.deadline());
    }
}
