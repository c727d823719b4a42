//! The detector on simulated paths: a sender that sends a packet each millisecond, and acknowledgments of single packets.

use std::collections::BTreeMap;

use reknit_recovery::{Config, Nanos, Recovery, Rtt};

const RTT: u64 = 20;

/// What happened.
#[derive(Debug, Default)]
struct Outcome {
    lost: Vec<u64>,
    /// When each was declared lost, in milliseconds after it was sent.
    delays: Vec<u64>,
    reductions: Vec<u64>,
    undone: Vec<u64>,
    late: usize,
}

/// Sends `packets`; `delay` is that of a packet and its acknowledgment in milliseconds, none if it is lost.
fn run(packets: u64, delay: impl Fn(u64) -> Option<u64>) -> (Recovery, Outcome) {
    let (mut recovery, mut outcome) = (Recovery::new(), Outcome::default());
    let mut outstanding: BTreeMap<u64, u64> = BTreeMap::new();
    let mut acks: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for now in 0..packets + 2000 {
        let at = Nanos::from_millis(now);
        if now < packets {
            recovery.on_sent(now);
            outstanding.insert(now, now);
            if let Some(delay) = delay(now) {
                acks.entry(now + delay).or_default().push(now);
            }
        }
        for number in acks.remove(&now).unwrap_or_default() {
            recovery.on_acked_range(at, number, number);
            match outstanding.remove(&number) {
                Some(sent) => {
                    recovery.on_acked(at, number);
                    recovery.on_rtt(Rtt { smoothed: Nanos::from_millis(RTT), latest: Nanos::from_millis(now - sent) });
                }
                None => outcome.late += 1,
            }
        }
        while let Some((&number, &sent)) = outstanding.first_key_value()
            && recovery.loss_time(number, Nanos::from_millis(sent)) <= at
        {
            outstanding.remove(&number);
            recovery.on_lost(at, number);
            outcome.lost.push(number);
            outcome.delays.push(now - sent);
        }
        let decision = recovery.decide(at);
        outcome.undone.extend_from_slice(decision.undone());
        outcome.reductions.extend(decision.reduce);
    }
    (recovery, outcome)
}

#[test]
fn in_order_it_is_rfc_9002() {
    let (recovery, outcome) = run(1000, |n| (n % 100 != 50).then_some(RTT));
    assert_eq!(outcome.lost, (0..10).map(|i| i * 100 + 50).collect::<Vec<_>>());
    assert!(outcome.delays.iter().all(|delay| *delay == RTT + 3), "{outcome:?}");
    assert_eq!(outcome.reductions, outcome.lost, "one for each, at once");
    assert_eq!((outcome.undone.len(), recovery.wait()), (0, None));
}

#[test]
fn packets_that_alternate_between_two_paths_are_lost_only_in_the_first_round_trip() {
    let (recovery, outcome) = run(2000, |n| Some(if n % 2 == 0 { RTT } else { RTT + 60 }));
    assert!(outcome.lost.iter().all(|n| *n < 200), "{outcome:?}");
    assert_eq!(outcome.late, outcome.lost.len());
    assert_eq!(outcome.undone, outcome.reductions);
    let wait = recovery.wait().unwrap();
    assert!(wait > Nanos::from_millis(59) && wait < Nanos::from_millis(120), "{wait:?}");
}

#[test]
fn real_losses_among_late_packets_are_found_and_reduce_the_window_once() {
    let delay = |n: u64| (n % 500 != 400).then_some(if n.is_multiple_of(3) { RTT + 30 } else { RTT });
    let (_, outcome) = run(5000, delay);
    let real: Vec<u64> = (0..10).map(|i| i * 500 + 400).collect();
    assert!(real.iter().all(|n| outcome.lost.contains(n)), "{outcome:?}");
    let stand = outcome.reductions.len() - outcome.undone.len();
    assert!((8..=10).contains(&stand), "{outcome:?}");
}

#[test]
fn a_burst_of_losses_is_one_event() {
    let (_, outcome) = run(1000, |n| (!(500..540).contains(&n)).then_some(RTT));
    assert_eq!(outcome.lost.len(), 40);
    assert_eq!(outcome.reductions, [500]);
}

#[test]
fn the_window_is_not_reduced_for_packets_that_came_before_the_keys() {
    let (_, outcome) = run(1000, |n| (n >= 5 && n != 500).then_some(RTT));
    assert_eq!(outcome.lost, [0, 1, 2, 3, 4, 500]);
    assert_eq!(outcome.reductions, [500]);
}

#[test]
fn microseconds_are_learned_too() {
    let mut recovery = Recovery::with(Config { granularity: Nanos::ZERO, ..Config::DEFAULT });
    let rtt = Rtt { smoothed: Nanos::from_micros(10), latest: Nanos::from_micros(10) };
    for n in 0..100_u64 {
        recovery.on_sent(n);
        recovery.on_rtt(rtt);
        if n % 2 == 1 {
            continue;
        }
        recovery.on_acked(Nanos::from_micros(n + 10), n);
        if let Some(late) = n.checked_sub(5) {
            recovery.on_acked(Nanos::from_micros(n + 10), late);
        }
    }
    let wait = recovery.wait().unwrap();
    assert!(wait >= Nanos::from_micros(4) && wait <= Nanos::from_micros(10), "{wait:?}");
}

#[test]
fn it_is_small() {
    assert!(size_of::<Recovery>() <= 1024, "{}", size_of::<Recovery>());
}
