//! Tests of the equaliser.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const SETTINGS: Equal = Equal { difference: None, longest: Duration::from_millis(300), most: 1000 };

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Sends packets one a millisecond by branches in turn, whose delays in ms `delays` says for each packet. What goes on, by number,
/// and the equaliser. Each packet is TCP, unless `tcp` is false.
fn sent(packets: u64, settings: Equal, tcp: bool, delays: impl Fn(u64) -> u64) -> (Vec<u64>, Equaliser<u8, u64>) {
    let mut equaliser = Equaliser::new(settings);
    let mut arrivals: Vec<(u64, u64)> = (0..packets).map(|n| (n + delays(n), n)).collect();
    arrivals.sort_unstable();
    let mut out = Vec::new();
    for (time, n) in arrivals {
        let header =
            TcpHeader { seq: (n as u32).wrapping_mul(100).wrapping_sub(5000), len: 100, ..TcpHeader::default() };
        equaliser.on_packet(at(time), (n % 2) as usize, tcp.then_some((1, header)), n, &mut out);
    }
    equaliser.release_all(&mut out);
    (out, equaliser)
}

/// The packets of `order` from number `from` on that come after a later one.
fn late(order: &[u64], from: u64) -> usize {
    let highest = order.iter().scan(0, |highest, n| Some(std::mem::replace(highest, (*n).max(*highest))));
    order.iter().zip(highest).filter(|(n, highest)| *highest > **n && **n >= from).count()
}

#[test]
fn branches_get_the_same_delay_whichever_is_faster() {
    for slow in [0, 1] {
        let (order, equaliser) = sent(2000, SETTINGS, true, |n| if n % 2 == slow { 200 } else { 50 });
        assert_eq!((order.len(), late(&order, 400)), (2000, 0));
        let delays: Vec<u64> = equaliser.delays().map(Duration::as_millis).collect();
        let fast = usize::from(slow == 0);
        assert!(delays[1 - fast] == 0 && (149..=151).contains(&delays[fast]), "{delays:?}");
    }
}

#[test]
fn a_new_difference_is_learned_also_if_the_other_branch_becomes_the_faster_one() {
    for (before, after) in [(200, 80), (80, 200), (200, 20)] {
        let (order, equaliser) = sent(4000, SETTINGS, true, |n| match n {
            _ if n % 2 == 0 => 50,
            0..2000 => before,
            _ => after,
        });
        assert_eq!(late(&order, 2500), 0, "{before} {after}");
        let delays: Vec<u64> = equaliser.delays().map(Duration::as_millis).collect();
        assert!(delays.iter().max().unwrap().abs_diff(after.abs_diff(50)) <= 1, "{delays:?}");
    }
}

#[test]
fn as_long_as_nothing_was_learned_nothing_is_held() {
    let (order, equaliser) = sent(2000, SETTINGS, false, |n| if n % 2 == 0 { 50 } else { 90 });
    assert!(late(&order, 0) > 900 && equaliser.counts().held == 0);
    let by_one_branch = sent(2000, SETTINGS, true, |_| 50).1;
    assert_eq!(by_one_branch.counts().held, 0);
}

#[test]
fn a_given_difference_holds_packets_of_the_first_branch_of_any_protocol() {
    let given = Equal { difference: Some(Duration::from_millis(40)), ..SETTINGS };
    let (order, equaliser) = sent(2000, given, false, |n| if n % 2 == 0 { 50 } else { 90 });
    assert_eq!((late(&order, 0), equaliser.counts().held), (0, 1000));
}

#[test]
fn larger_differences_are_left_alone_and_no_more_is_held_than_allowed() {
    let (order, equaliser) = sent(2000, SETTINGS, true, |n| if n % 2 == 0 { 50 } else { 400 });
    assert!(late(&order, 0) > 800 && equaliser.counts().held == 0);
    let (order, equaliser) = sent(2000, Equal { most: 10, ..SETTINGS }, true, |n| if n % 2 == 0 { 50 } else { 150 });
    assert!(order.len() == 2000 && equaliser.counts().held > 900 && late(&order, 400) > 700);
}

#[test]
fn what_was_learned_is_forgotten_after_a_while() {
    let mut equaliser = sent(2000, SETTINGS, true, |n| if n % 2 == 0 { 50 } else { 90 }).1;
    let mut out = Vec::new();
    equaliser.on_packet(at(100_000), 0, None, 0, &mut out);
    equaliser.on_packet(at(1_000_000), 0, None, 1, &mut out);
    assert_eq!(out, [0, 1]);
    assert!(equaliser.delays().all(Duration::is_zero) && equaliser.held() == 0);
}

#[test]
fn retransmissions_and_pauses_do_not_disturb() {
    let mut equaliser: Equaliser<u8, u64> = Equaliser::new(SETTINGS);
    let mut arrivals: Vec<(u64, u64, u64)> = Vec::new();
    for n in 0..2000_u64 {
        let sent = n + n / 20 * 100; // a pause after each twenty
        let delay = if n % 2 == 0 { 50 } else { 90 };
        let lost = if n % 11 == 0 { 130 } else { 0 };
        arrivals.push((sent + lost + delay, n, sent + lost));
    }
    arrivals.sort_unstable();
    for (time, n, sent) in arrivals {
        let header = TcpHeader { seq: n as u32 * 100, len: 100, timestamp: Some(sent as u32), ..TcpHeader::default() };
        equaliser.on_packet(at(time), (n % 2) as usize, Some((1, header)), n, &mut Vec::new());
    }
    let delays: Vec<u64> = equaliser.delays().map(Duration::as_millis).collect();
    assert!((39..=41).contains(&delays[0]) && delays[1] == 0, "{delays:?}");
}

proptest! {
    #[test]
    fn everything_goes_on_once_in_time_and_in_the_order_of_its_branch(
        packets in vec((0_u64..20, 0_usize..3, 0_u32..60, any::<bool>()), 0..400),
    ) {
        let limit = Duration::from_millis(30);
        let mut equaliser: Equaliser<u8, usize> = Equaliser::new(Equal { difference: None, longest: limit, most: 20 });
        let (mut now, mut gone, mut arrived) = (at(0), Vec::new(), Vec::new());
        for (place, (gap, branch, number, is_tcp)) in packets.iter().enumerate() {
            now = now + Duration::from_millis(*gap);
            arrived.push(now);
            let mut out = Vec::new();
            while equaliser.deadline() <= now {
                let deadline = equaliser.deadline();
                equaliser.on_timer(deadline, &mut out);
                gone.extend(out.drain(..).map(|place| (deadline, place)));
            }
            let header = TcpHeader { seq: number * 100, len: 100, ..TcpHeader::default() };
            equaliser.on_packet(now, *branch, is_tcp.then_some((1, header)), place, &mut out);
            gone.extend(out.drain(..).map(|place| (now, place)));
            prop_assert!(equaliser.held() <= 20 && equaliser.held() + gone.len() == place + 1);
        }
        let mut out = Vec::new();
        equaliser.release_all(&mut out);
        gone.extend(out.into_iter().map(|place| (now, place)));
        let mut places: Vec<usize> = gone.iter().map(|(_, place)| *place).collect();
        for branch in 0..3 {
            prop_assert!(places.iter().filter(|place| packets[**place].1 == branch).is_sorted());
        }
        places.sort_unstable();
        prop_assert!(places.into_iter().eq(0..packets.len()));
        for (left, place) in gone {
            prop_assert!(left.since(arrived[place]) <= limit);
        }
    }
}
