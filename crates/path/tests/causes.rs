//! Every cause of reordering behaves as defined: one statistical test each, with a fixed seed and a bound of at least
//! five standard errors.

use std::ops::RangeInclusive;

use reknit_path::causes::CAUSES;
use reknit_path::{Direction, Profile, Train, TrainResult};
use reknit_units::{Bytes, Duration, Instant};

/// Sends `packets` of 1000 bytes, one every `gap_us` microseconds, through the stages of `toml`.
fn pass(toml: &str, packets: u32, gap_us: u64) -> TrainResult {
    let text = format!("description = \"test\"\n{}", toml.replace("kind", "[[forward]]\nkind"));
    let profile = Profile::parse("test", &text).unwrap();
    let train = Train { packets, size: Bytes(1000), gap: Duration::from_micros(gap_us) };
    train.through(&profile, Direction::Forward, 7)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn delays(result: &TrainResult) -> Vec<f64> {
    result.arrivals().map(|p| ms(p.delay())).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn share(result: &TrainResult, which: impl Fn(f64) -> bool) -> f64 {
    delays(result).into_iter().filter(|delay| which(*delay)).count() as f64 / result.arrivals().count() as f64
}

#[track_caller]
fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value}, expected {expected} ± {tolerance}");
}

fn is_in_order(result: &TrainResult) -> bool {
    result.extents().is_empty()
}

#[test]
fn multipath_divides_by_weight() {
    let result = pass(
        "kind = \"multipath\"\npaths = [{ delay = \"50 ms\", weight = 3 }, { delay = \"25 ms\" }]\n",
        40_000,
        1000,
    );
    assert_near(share(&result, |delay| delay > 40.0), 0.75, 0.012);
    // A packet on the long path is overtaken by all packets on the short path that leave within the next 25 ms.
    assert_near(result.reordered_ratio(), 0.75, 0.012);
}

#[test]
fn with_a_tick_packets_leave_the_paths_only_at_its_multiples() {
    let toml = "kind = \"multipath\"\npaths = [{ delay = \"50 ms\" }, { delay = \"37.5 ms\" }]\n";
    let free = pass(toml, 1000, 1300);
    let ticking = pass(&format!("{toml}tick = \"10 ms\"\n"), 1000, 1300);
    let left = |result: &TrainResult| -> Vec<u64> {
        result.arrivals().map(|p| 1300 * u64::from(p.number) + p.delay().as_nanos() / 1000).collect()
    };
    let rounded: Vec<u64> = left(&free).iter().map(|at| at.next_multiple_of(10_000)).collect();
    assert!(left(&free).iter().any(|at| at % 10_000 != 0));
    let sorted = |mut times: Vec<u64>| {
        times.sort_unstable();
        times
    };
    assert_eq!(sorted(left(&ticking)), sorted(rounded));
    // What leaves at the same tick leaves in the order of sending.
    assert!(ticking.reordered_ratio() < free.reordered_ratio());
}

#[test]
fn flowlets_stay_together() {
    // Bursts of ten packets 0.1 ms apart, and 20 ms between bursts. A train has a single interval, so use two trains.
    let toml = "kind = \"multipath\"\nchoice = \"flowlet\"\ngap = \"5 ms\"\npaths = [{ delay = \"50 ms\" }, { delay = \"25 ms\" }]\n";
    assert!(is_in_order(&pass(toml, 10_000, 100)));
    let apart = pass(toml, 10_000, 6000);
    assert_near(share(&apart, |delay| delay > 40.0), 0.5, 0.03);
}

#[test]
fn flutter_redraws_the_delay_at_its_rate() {
    let result = pass(
        "kind = \"flutter\"\ninterval = \"exponential(50 ms)\"\ndelay = \"normal(250 ms, 66.7 ms)\"\nminimum = \"50 ms\"\n",
        200_000,
        1000,
    );
    let delays_in_order_of_sending = {
        let mut all: Vec<_> = result.arrivals().collect();
        all.sort_by_key(|p| p.number);
        all.iter().map(|p| p.delay()).collect::<Vec<_>>()
    };
    let changes = delays_in_order_of_sending.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // 200 s with 20 changes per second, of which two within the same millisecond count once.
    assert_near(changes as f64, 4000.0 * (1.0 - 0.01), 320.0);
    assert_near(mean(&delays(&result)), 250.0, 10.0);
    assert!(delays(&result).iter().all(|delay| *delay >= 50.0));
}

#[test]
fn two_routes_are_two_delays() {
    let result = pass(
        "kind = \"flutter\"\ninterval = \"exponential(10 s)\"\ndelay = \"either(50 ms, 80 ms)\"\nminimum = \"50 ms\"\n",
        200_000,
        20_000,
    );
    assert!(delays(&result).iter().all(|delay| (*delay - 50.0).abs() < 1e-6 || (*delay - 80.0).abs() < 1e-6));
    assert_near(share(&result, |delay| delay > 60.0), 0.5, 0.13);
}

#[test]
fn a_bundle_reorders_if_its_queues_are_unequal() {
    let bundle = |more: &str| {
        pass(&format!("kind = \"stripe\"\nlinks = 4\nrate = \"10 Mbit/s\"\n{more}"), 50_000, 400).reordered_ratio()
    };
    // With links used in turn, packets of equal size keep their order only while other traffic leaves the queues equal.
    assert_near(bundle("arbitration = \"round-robin\"\n"), 0.0, 0.0);
    let disturbed = bundle("arbitration = \"round-robin\"\nload = 0.4\n");
    assert!((0.05..0.6).contains(&disturbed), "{disturbed}");
    // A packet on the link that is idle first overtakes no packet of its own size, unless one link is longer.
    assert_near(bundle("load = 0.4\n"), 0.0, 0.0);
    assert!(bundle("load = 0.4\nskew = \"uniform(0 ms, 2 ms)\"\n") > 0.01);
}

#[test]
fn a_work_conserving_bundle_reorders_if_its_links_have_different_rates() {
    let bundle = |rates: &str| pass(&format!("kind = \"stripe\"\nrates = [{rates}]\n"), 50_000, 200).reordered_ratio();
    // The link is full: three packets pass over the fast link while one is on the slow link.
    assert_near(bundle("\"30 Mbit/s\", \"10 Mbit/s\""), 0.25, 0.01);
    assert_near(bundle("\"20 Mbit/s\", \"20 Mbit/s\""), 0.0, 0.0);
}

#[test]
fn engines_finish_in_their_own_order() {
    let result = pass(
        "kind = \"engines\"\nservice = \"lognormal(0.01 ms, 1)\"\nslow = 0.001\nslow_service = \"constant(1 ms)\"\n",
        100_000,
        20,
    );
    assert_near(share(&result, |delay| delay >= 1.0), 0.001, 0.0005);
    let fast: Vec<f64> = delays(&result).into_iter().filter(|delay| *delay < 0.5).collect();
    assert_near(mean(&fast), 0.01, 0.001);
    assert!(result.reordered_ratio() > 0.01);
}

#[test]
fn a_miss_delays_the_waiting_packets_and_others_overtake_them() {
    let result =
        pass("kind = \"slow-path\"\nlookup = \"5 ms\"\nservice = \"1 ms\"\neviction = \"constant(1 s)\"\n", 5000, 500);
    let by_number = |n: u32| ms(result.copies.iter().find(|p| p.number == n).unwrap().delay());
    // Ten packets arrive during the look-up of 5 ms; the first leaves after 6 ms, the next a millisecond later.
    assert_near(by_number(0), 6.0, 1e-6);
    assert_near(by_number(1), 6.5, 1e-6);
    assert_near(by_number(9), 10.5, 1e-6);
    assert_near(by_number(10), 0.0, 1e-6);
    // There is a look-up every second.
    assert_near(f64::from(result.extents().len() as u32), 3.0 * 10.0, 1.0);
}

#[test]
fn the_backlog_of_a_lull_leaves_between_new_packets() {
    let result = pass(
        "kind = \"lull\"\ninterval = \"constant(100 ms)\"\npause = \"constant(10 ms)\"\ndrain = \"5 ms\"\n",
        125,
        1000,
    );
    let order: Vec<u32> = result.arrivals().map(|p| p.number).collect();
    // 100 to 109 arrive in the pause. Then each new packet is followed by one of them.
    assert_eq!(order[98..108], [98, 99, 100, 110, 101, 111, 102, 112, 103, 113]);
    assert_eq!(result.lost(), 0);
}

#[test]
fn each_failure_of_the_link_costs_a_retry() {
    let result = pass("kind = \"arq\"\nprobability = 0.2\nretry = \"20 ms\"\nretries = 3\n", 100_000, 1000);
    assert_near(f64::from(result.lost()) / 1e5, 0.0016, 0.0007);
    let survived = 1.0 - 0.0016;
    assert_near(share(&result, |delay| delay < 1.0), 0.8 / survived, 0.007);
    assert_near(share(&result, |delay| (19.0..21.0).contains(&delay)), 0.16 / survived, 0.006);
    assert!(!is_in_order(&result));
    let resequenced = pass("kind = \"arq\"\nprobability = 0.2\nretry = \"20 ms\"\nresequence = true\n", 10_000, 1000);
    assert!(is_in_order(&resequenced));
}

#[test]
fn a_satellite_displaces_by_the_packets_sent_in_the_meantime() {
    let result = pass("kind = \"arq\"\nprobability = 0.01\nretry = \"540 ms\"\n", 20_000, 8000);
    let mut extents = result.extents();
    extents.sort_unstable();
    // 540 ms at 125 packets per second.
    assert_near(f64::from(extents[extents.len() / 2]), 67.0, 2.0);
}

#[test]
fn stalls_keep_the_order() {
    let result = pass("kind = \"stall\"\nprobability = 0.02\nlength = \"exponential(3.5 s)\"\n", 20_000, 1_000_000);
    assert!(is_in_order(&result));
    let mut last = Instant::ZERO;
    let mut stalls = Vec::new();
    for packet in result.arrivals() {
        let begins = packet.sent.max(last);
        let stall = packet.arrived.since(begins).as_secs_f64();
        if stall > 0.0 {
            stalls.push(stall);
        }
        last = packet.arrived;
    }
    assert_near(stalls.len() as f64 / 20_000.0, 0.02, 0.005);
    assert_near(mean(&stalls), 3.5, 0.9);
}

#[test]
fn outages_lose_their_share_of_the_time() {
    let result =
        pass("kind = \"outage\"\nup = \"uniform(0.1 s, 20 s)\"\ndown = \"exponential(3.5 s)\"\n", 400_000, 100_000);
    let share_down = 3.5 / (3.5 + 10.05);
    assert_near(f64::from(result.lost()) / 4e5, share_down, 0.03);
}

#[test]
fn a_shared_link_carries_the_mean_of_its_rates() {
    // Saturated: 1000 bytes every 4 ms are 2 Mbit/s; the link has 1 Mbit/s four fifths of the time, and 0.25 Mbit/s the
    // rest.
    let result = pass(
        "kind = \"varying-link\"\nrate = \"1 Mbit/s\"\nslow_rate = \"0.25 Mbit/s\"\nfast_for = \"exponential(2 s)\"\n\
         slow_for = \"exponential(0.5 s)\"\nqueue = \"10 packets\"\n",
        500_000,
        4000,
    );
    let carried = result.arrivals().count() as f64 * 8000.0 / 2000.0;
    assert_near(carried, 0.85e6, 0.03e6);
    assert!(is_in_order(&result));
}

#[test]
fn packets_beyond_the_profile_are_demoted() {
    // 8 Mbit/s and a profile of 4 Mbit/s: half of the packets are out of profile.
    let result = pass(
        "kind = \"diffserv\"\nrate = \"20 Mbit/s\"\nprofile = \"4 Mbit/s\"\ndepth = 2\nload = 0.7\n",
        50_000,
        1000,
    );
    let priority = share(&result, |delay| delay <= 0.4 + 1e-9);
    // Half of the packets are within the profile. Some of the others find the best-effort queue empty (1 - 0.7, less
    // their own load).
    assert!((0.5..0.68).contains(&priority), "{priority}");
    assert!(result.reordered_ratio() > 0.01);
}

const ROUTES: &str =
    "kind = \"manet\"\nhop = \"uniform(5 ms, 20 ms)\"\nlife = \"exponential(2 s)\"\noutage = \"uniform(0.1 s, 1 s)\"\n";

#[test]
fn routes_of_a_mobile_network_change_length_and_break() {
    let result = pass(ROUTES, 400_000, 10_000);
    // Half of the changes begin with an outage of 0.55 s on average.
    assert_near(f64::from(result.lost()) / 4e5, 0.275 / 2.275, 0.02);
    let all = delays(&result);
    assert!(all.iter().all(|delay| (10.0..=120.0).contains(delay)));
    // A random walk between reflecting bounds visits all lengths equally often: 4 hops of 12.5 ms on average.
    assert_near(mean(&all), 50.0, 5.0);
}

#[test]
fn packets_on_a_new_route_overtake_those_on_the_old_one() {
    let reordered = |more: &str| pass(&format!("{ROUTES}{more}"), 400_000, 5000).reordered_ratio();
    // The outage is longer than any difference of delays.
    assert_near(reordered("breaks = 1.0\n"), 0.0, 0.0);
    // Every change to a route that is faster by d reorders the packets of the last d, at 200 packets per second. The
    // delays of two successive routes differ by about 12 to 20 ms; half of the new ones are faster.
    let (all, half) = (reordered("breaks = 0.0\n"), reordered(""));
    assert!((0.002..0.006).contains(&all), "{all}");
    assert_near(half, all / 2.0 / (1.0 - 0.275 / 2.275) * (2.0 / 2.275), 0.0006);
}

#[test]
fn wireless_hops_vary_the_delay_without_reordering() {
    let result = pass("kind = \"wlan\"\nhops = 1\nprobability = 0.2\n", 50_000, 20_000);
    assert!(is_in_order(&result));
    // Tries: 1 + p + p^2 + ...; the back-off of try k is half of 32 * 2^k - 1 slots.
    let frames: f64 = (0..7).map(|k| 0.2f64.powi(k)).sum();
    let slots: f64 = (0..7).map(|k| 0.2f64.powi(k) * (32.0 * 2f64.powi(k.min(5)) - 1.0) / 2.0).sum();
    assert_near(mean(&delays(&result)), frames * 2.0 + slots * 0.02, 0.04);
    assert!(result.lost() <= 6, "{}", result.lost()); // 0.2^7
}

#[test]
fn displacement_is_exact() {
    let result = pass("kind = \"displace\"\npositions = 3\nprobability = 0.05\n", 100_000, 1000);
    let extents = result.extents();
    assert_near(extents.len() as f64 / 1e5, 0.05, 0.005);
    // Three others pass it. If another packet is also waiting, that one may leave in between.
    assert!(extents.iter().all(|extent| (3..=6).contains(extent)));
    let alone = extents.iter().filter(|extent| **extent == 3).count() as f64 / extents.len() as f64;
    assert!(alone > 0.8, "{alone}");
}

#[test]
fn the_selected_share_is_delayed_by_the_distribution() {
    let result = pass("kind = \"delay\"\nprobability = 0.1\nextra = \"normal(25 ms, 8 ms)\"\n", 100_000, 1000);
    let extra: Vec<f64> = delays(&result).into_iter().filter(|delay| *delay > 0.0).collect();
    assert_near(extra.len() as f64 / 1e5, 0.1, 0.005);
    assert_near(mean(&extra), 25.0, 0.5);
}

#[test]
fn points_in_series_add_up_or_cancel() {
    let one = "kind = \"displace\"\npositions = 2\nprobability = 0.05\n";
    let three = pass(&one.repeat(3), 100_000, 1000);
    // Most packets are displaced by at most one point. Some are displaced further by two points, and some displacements
    // cancel.
    assert!((0.11..0.15).contains(&three.reordered_ratio()), "{}", three.reordered_ratio());
    assert!(three.extents().into_iter().max() > Some(2));
}

#[test]
fn bursts_of_loss_begin_with_a_packet() {
    let result = pass("kind = \"outage\"\nprobability = 0.0002\ndown = \"uniform(300 ms, 400 ms)\"\n", 1_000_000, 2000);
    // Each burst takes 350 ms, or 175 packets, and begins after 5000 packets that passed.
    assert_near(f64::from(result.lost()) / 1e6, 175.0 / 5175.0, 0.015);
}

#[test]
fn copies_arrive_late() {
    let result = pass("kind = \"duplicate\"\nprobability = 0.01\nextra = \"uniform(0 ms, 20 ms)\"\n", 100_000, 1000);
    assert_near(f64::from(result.duplicates()) / 1e5, 0.01, 0.002);
    let late: Vec<f64> = result.copies.iter().filter(|p| !p.first).map(|p| ms(p.delay())).collect();
    assert_near(mean(&late), 10.0, 1.0);
}

#[test]
fn only_the_share_of_corrupted_packets_is_lost() {
    for stage in ["kind = \"corruption\"\nprobability = 0.03\n", "kind = \"netem\"\nrule = \"corrupt 3%\"\n"] {
        let result = pass(stage, 100_000, 1000);
        assert_near(f64::from(result.lost()) / 1e5, 0.03, 0.0028);
        assert!(is_in_order(&result) && delays(&result).iter().all(|delay| *delay < 1e-9));
    }
    // A corrupted packet occupies its place in the queue: packets arrive twice as fast as they leave, so half of them
    // are dropped, and half of the rest are corrupted.
    let result = pass("kind = \"corruption\"\nprobability = 0.5\nkind = \"link\"\nrate = \"8 Mbit/s\"\n", 40_000, 500);
    assert_near(f64::from(result.lost()) / 4e4, 0.75, 0.013);
}

#[test]
fn gilbert_bursts_have_the_right_length() {
    let result = pass("kind = \"gilbert\"\nto_bad = 0.01\nto_good = 0.25\n", 400_000, 1000);
    assert_near(f64::from(result.lost()) / 4e5, 0.01 / 0.26, 0.004);
    let numbers: Vec<u32> = result.arrivals().map(|p| p.number).collect();
    let gaps: Vec<f64> =
        numbers.windows(2).map(|pair| f64::from(pair[1] - pair[0] - 1)).filter(|gap| *gap > 0.0).collect();
    assert_near(mean(&gaps), 4.0, 0.3);
}

#[test]
fn netem_sends_a_share_at_once() {
    let result = pass("kind = \"netem\"\nrule = \"delay 5ms reorder 25%\"\n", 100_000, 1000);
    assert_near(share(&result, |delay| delay < 1.0), 0.25, 0.008);
    let every_fifth = pass("kind = \"netem\"\nrule = \"delay 5ms reorder 100% gap 5\"\n", 1000, 1000);
    assert_near(share(&every_fifth, |delay| delay < 1.0), 0.2, 1e-9);
}

#[test]
fn netem_jitter_is_uniform_around_the_delay_or_normal() {
    let uniform = delays(&pass("kind = \"netem\"\nrule = \"delay 50ms 10ms\"\n", 100_000, 1000));
    assert!(uniform.iter().all(|delay| (40.0..=60.0).contains(delay)));
    assert_near(mean(&uniform), 50.0, 0.1);
    let normal = delays(&pass("kind = \"netem\"\nrule = \"delay 50ms 10ms distribution normal\"\n", 100_000, 1000));
    let within = normal.iter().filter(|delay| (40.0..=60.0).contains(*delay)).count() as f64 / 1e5;
    assert_near(within, 0.6827, 0.008);
}

#[test]
fn netem_rate_serialises_and_duplicate_copies() {
    let result = pass("kind = \"netem\"\nrule = \"rate 8mbit\"\n", 10, 0);
    assert_near(ms(result.copies[9].arrived.since(Instant::ZERO)), 10.0, 1e-6);
    let result = pass("kind = \"netem\"\nrule = \"duplicate 10%\"\n", 20_000, 1000);
    assert_near(f64::from(result.duplicates()) / 2e4, 0.1, 0.011);
}

#[test]
fn a_recording_is_replayed_packet_by_packet() {
    let result = pass("kind = \"recorded\"\npackets = [\"3 ms\", \"lost\", \"1 ms\"]\n", 6, 10_000);
    let seen: Vec<(u32, f64)> = result.arrivals().map(|p| (p.number, ms(p.delay()))).collect();
    assert_eq!(seen, [(0, 3.0), (2, 1.0), (3, 3.0), (5, 1.0)]);
}

#[test]
fn red_drops_before_the_queue_is_full() {
    let link =
        |red: &str| pass(&format!("kind = \"link\"\nrate = \"8 Mbit/s\"\nqueue = \"200 packets\"\n{red}"), 40_000, 800);
    let plain = link("");
    let managed = link("red = { min = 20, max = 60, probability = 0.1, weight = 0.02 }\n");
    // The load is a quarter above the rate: both lose a fifth, but RED keeps the queue short.
    assert_near(f64::from(plain.lost()) / 4e4, 0.2, 0.01);
    assert_near(f64::from(managed.lost()) / 4e4, 0.2, 0.02);
    assert!(managed.delay_quantile(0.5) < plain.delay_quantile(0.5) / 2);
}

/// What a cause does to 200,000 packets in the terms of RFC 4737: the share of reordered packets (§4.1), the median
/// extent (§4.2) and the share of 3-reordered packets (§5), each as a range that holds for other seeds, too.
struct Expected {
    reordered: RangeInclusive<f64>,
    extent: RangeInclusive<u32>,
    three: RangeInclusive<f64>,
}

/// `None`: the cause delays, loses or duplicates packets, but keeps their order.
fn expected(number: usize) -> Option<Expected> {
    let (reordered, extent, three) = match number {
        1 => (0.49..=0.51, 25..=40, 0.0..=0.001),
        2 => (0.35..=0.50, 45..=70, 0.005..=0.02),
        3 => (0.50..=0.70, 4..=9, 0.10..=0.22),
        4 => (0.07..=0.10, 1..=1, 0.005..=0.011),
        5 => (0.0003..=0.0015, 2..=4, 0.0..=0.0003),
        6 => (0.001..=0.012, 30..=75, 0.0..=0.0005),
        7 => (0.015..=0.024, 12..=14, 0.015..=0.024),
        8 => (0.007..=0.012, 34..=36, 0.007..=0.012),
        12 => (0.30..=0.43, 30..=65, 0.04..=0.09),
        13 => (0.0005..=0.002, 1..=2, 0.0..=0.0005),
        15 | 17 => (0.28..=0.32, 14..=18, 0.16..=0.19),
        16 => (0.007..=0.012, 3..=3, 0.007..=0.011),
        18 => (0.025..=0.034, 2..=2, 0.0..=0.001),
        19 => (0.015..=0.024, 22..=30, 0.015..=0.024),
        9 | 10 | 11 | 14 | 20 => return None,
        _ => panic!("C{number} has no expectation"),
    };
    Some(Expected { reordered, extent, three })
}

#[test]
fn the_path_of_each_cause_reorders_as_much_as_the_cause_does() {
    let mut wrong = Vec::new();
    for (number, cause) in (1..).zip(&CAUSES) {
        let profile = Profile::load(cause.path, &[]).unwrap();
        let direction = if number == 15 { Direction::Reverse } else { Direction::Forward };
        // 80 % of the slowest rate, so that queues hardly matter.
        let gap = profile.bottleneck(direction).unwrap().time_for(Bytes(1500)).mul_f64(1.25);
        for seed in 1..=3 {
            let result = Train { packets: 200_000, size: Bytes(1500), gap }.through(&profile, direction, seed);
            let (reordering, mut extents) = result.reordering();
            extents.sort_unstable();
            let median = extents.get(extents.len() / 2).copied().unwrap_or(0);
            let share = |n: usize| n as f64 / f64::from(result.sent);
            let (reordered, three) = (share(extents.len()), share(reordering.n_reordered(3) as usize));
            let is_right = expected(number).map_or(extents.is_empty(), |expected| {
                expected.reordered.contains(&reordered)
                    && expected.extent.contains(&median)
                    && expected.three.contains(&three)
            });
            if !is_right {
                let path = cause.path;
                wrong.push(format!("C{number}, {path}, seed {seed}: {reordered} by {median}, {three} 3-reordered"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
