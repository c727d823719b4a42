//! The rate of the bottleneck.
//!
//! Packet-pair dispersion (Keshav): packets that are sent faster than the rate of the link arrive one transmission time apart,
//! even if the sender is slower on average. So the most frequent rate of such packets is the rate of the link. Jitter that is as
//! long as the time between two packets hides it; trains of more packets show it then (Dovrolis, Ramanathan and Moore: Packet
//! dispersion techniques). If these have no frequent rate either, the highest rate at which data arrived during a round trip is
//! a lower limit.
//!
//! Only a queue spreads packets out, or keeps the spacing of those that the ACK clock sends. A queue delays packets more and more,
//! or for longer than the shortest transit, and keeps their order. Without these signs, the spacing is the sender's own, or the
//! difference between two paths.

use reknit_units::Duration;

use super::{Nanos, PathPacket};

/// Rates whose ratio is at most this count as equal.
const EQUAL: f64 = 1.1;
/// A queue grows if the spacing at the sender is below this share of the spacing at the receiver.
const GROWS: f64 = 0.8;
/// The ACK clock sends packets with the spacing of earlier ones: at most this share of the spacing at the receiver.
const CLOCKED: f64 = 1.05;
/// The lowest rate that is reported, bit/s. It keeps transmission times finite.
const MIN_RATE: f64 = 8_000.0;
/// Pairs that are needed, and the share of them that must be equal.
const MIN_PAIRS: usize = 20;
const MIN_SHARE: f64 = 0.3;
/// How many sends apart the packets of pairs and of trains are. If packets take paths in turn, adjacent packets do not show the
/// rate.
const PAIRS: [usize; 3] = [1, 2, 3];
const TRAINS: [usize; 4] = [6, 10, 16, 24];
/// Trains decide if so many times as many of them have a common rate.
const MORE_COMMON: f64 = 1.5;
/// Pairs below this share of the highest throughput do not show the link, but packets that took different paths or pauses of
/// the sender.
const MIN_OF_THROUGHPUT: f64 = 0.85;
/// The averaging window of the throughput, in round trips; shorter windows do not average out jitter.
const WINDOW: u64 = 4;
/// This quantile of the throughput of all windows counts as the maximum: some packets come in bursts after a stall.
const QUANTILE: f64 = 0.98;
/// The fewest packets in a window.
const MIN_WINDOW: usize = 16;

/// Bits per second, and whether that is only a lower limit.
pub(super) fn estimate(packets: &[PathPacket], round_trip: Duration) -> (f64, bool) {
    let sustained = [round_trip * WINDOW, round_trip].into_iter().find_map(|window| throughput(packets, window));
    let sustained = sustained.unwrap_or_else(|| mean(packets));
    match Queue::ALL.into_iter().find_map(|queue| common_rate(packets, queue, MIN_OF_THROUGHPUT * sustained)) {
        Some(rate) => (rate.max(MIN_RATE), false),
        None => (sustained.max(MIN_RATE), true),
    }
}

/// Bits per second as packets show that the link has spread out, if they do.
pub(super) fn shown(packets: &[PathPacket]) -> Option<f64> {
    common_rate(packets, Queue::Grows, MIN_OF_THROUGHPUT * mean(packets))
}

/// The transmission time of this many bytes, in nanoseconds.
pub(super) fn time_for(bytes: u32, rate: f64) -> f64 {
    f64::from(bytes) * 8e9 / rate
}

fn rate_of(bytes: u64, span: Nanos) -> f64 {
    bytes as f64 * 8e9 / span as f64
}

fn arrivals(packets: &[PathPacket]) -> Vec<(Nanos, u64)> {
    let arrived = packets.iter().filter_map(|packet| Some((packet.arrived?, packet.size.into())));
    let mut arrivals: Vec<(Nanos, u64)> = arrived.collect();
    arrivals.sort_unstable();
    arrivals
}

/// The rate of a short transfer: its average.
fn mean(packets: &[PathPacket]) -> f64 {
    let arrivals = arrivals(packets);
    let bytes: u64 = arrivals.iter().skip(1).map(|(_, bytes)| bytes).sum();
    let span = arrivals.last().map_or(0, |last| last.0) - arrivals.first().map_or(0, |first| first.0);
    if span > 0 { rate_of(bytes, span) } else { 1e9 }
}

/// The highest rate of arrival in windows of at least this length, as a quantile; none if the transfer is shorter.
fn throughput(packets: &[PathPacket], window: Duration) -> Option<f64> {
    let arrivals = arrivals(packets);
    let window = window.as_nanos().cast_signed();
    let mut rates = Vec::new();
    let (mut end, mut bytes) = (0, 0);
    for start in 0..arrivals.len() {
        let is_short = |end: usize| arrivals[end].0 - arrivals[start].0 < window || end - start < MIN_WINDOW;
        while end < arrivals.len() && (end <= start || is_short(end)) {
            bytes += arrivals[end].1;
            end += 1;
        }
        if end == arrivals.len() {
            break;
        }
        bytes -= arrivals[start].1;
        let span = arrivals[end].0 - arrivals[start].0;
        if span > 0 {
            rates.push(rate_of(bytes + arrivals[end].1, span));
        }
    }
    rates.sort_by(f64::total_cmp);
    #[expect(clippy::cast_sign_loss, reason = "a quantile is not negative")]
    let index = (rates.len().saturating_sub(1) as f64 * QUANTILE) as usize;
    rates.get(index).copied()
}

/// Which packets show the rate of the link: first only those that a growing queue has spread out; if there are too few, also
/// those that have waited in a queue that does not grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queue {
    Grows,
    Stands,
}

impl Queue {
    const ALL: [Queue; 2] = [Queue::Grows, Queue::Stands];
}

/// Packets that one acknowledgment reports, or a single packet.
#[derive(Clone, Copy, Debug)]
struct Group {
    arrived: Nanos,
    last_sent: Nanos,
    bytes: u64,
    /// The transit of the last packet beyond the shortest one.
    waited: Nanos,
    /// A packet that was sent later arrived earlier.
    is_overtaken: bool,
}

/// The most frequent rate of pairs, or of trains if jitter hides it from pairs.
fn common_rate(packets: &[PathPacket], queue: Queue, least: f64) -> Option<f64> {
    let runs = runs(packets);
    let [pairs, trains] = [&PAIRS[..], &TRAINS].map(|distances| frequent_rate(&runs, distances, queue, least));
    let found = match (pairs, trains) {
        (Some(pairs), Some(trains)) if trains.0 > pairs.0 * MORE_COMMON => trains,
        (pairs, trains) => pairs.or(trains)?,
    };
    Some(found.1)
}

/// The most frequent rate, from `least` on, of packets that were sent faster than they arrived, after its share; none if no
/// rate is frequent. If packets take several paths alternately, every second or third packet shows it, not adjacent ones.
fn frequent_rate(runs: &[Vec<Group>], distances: &[usize], queue: Queue, least: f64) -> Option<(f64, f64)> {
    let rates = |apart: usize| -> Vec<f64> {
        let windows = runs.iter().flat_map(|run| run.windows(apart + 1));
        windows.filter_map(|groups| rate_between(groups, queue)).filter(|rate| *rate >= least).collect()
    };
    let found = distances.iter().filter_map(|apart| most_frequent(rates(*apart)));
    found.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// The packets of each acknowledgment, in runs between lost packets, which may have used the link as well.
fn runs(packets: &[PathPacket]) -> Vec<Vec<Group>> {
    let transit = |packet: &PathPacket| packet.arrived.map(|arrived| arrived - packet.sent);
    let once = || packets.iter().filter(|packet| !packet.is_retransmission);
    let shortest = once().filter_map(transit).min().unwrap_or_default();
    let earliest_later = earliest_later(packets);
    let mut runs: Vec<Vec<Group>> = vec![Vec::new()];
    for (packet, earliest_later) in packets.iter().zip(earliest_later) {
        let Some(arrived) = packet.arrived else {
            runs.push(Vec::new());
            continue;
        };
        let Some(run) = runs.last_mut() else { break };
        let waited = arrived - packet.sent - shortest;
        match run.last_mut() {
            Some(group) if group.arrived == arrived => {
                group.last_sent = packet.sent;
                group.bytes += u64::from(packet.size);
                group.waited = waited;
            }
            _ => run.push(Group {
                arrived,
                last_sent: packet.sent,
                bytes: packet.size.into(),
                waited,
                is_overtaken: earliest_later < arrived,
            }),
        }
    }
    runs
}

/// For each packet, when the first of those arrived that were sent later. Which transmission arrived is not sure for
/// retransmissions, so they overtake none.
fn earliest_later(packets: &[PathPacket]) -> Vec<Nanos> {
    let mut earliest = Nanos::MAX;
    let mut all: Vec<Nanos> = Vec::with_capacity(packets.len());
    for packet in packets.iter().rev() {
        all.push(earliest);
        earliest = earliest.min(packet.arrived.filter(|_| !packet.is_retransmission).unwrap_or(Nanos::MAX));
    }
    all.reverse();
    all
}

/// The rate at which all groups but the first left the link, if there was such a queue.
fn rate_between(groups: &[Group], queue: Queue) -> Option<f64> {
    let (first, last) = (groups.first()?, groups.last()?);
    let gap = last.arrived - first.arrived;
    // A packet that is overtaken took another path than one that is not.
    if gap <= 0 || first.is_overtaken != last.is_overtaken {
        return None;
    }
    let sent = (last.last_sent - first.last_sent) as f64;
    let one = gap as f64 / (groups.len() - 1) as f64;
    let has_waited = || !first.is_overtaken && first.waited.min(last.waited) as f64 >= one;
    let stands = || queue == Queue::Stands && sent < CLOCKED * gap as f64 && has_waited();
    let is_queued = sent < GROWS * gap as f64 || stands();
    is_queued.then(|| rate_of(groups[1..].iter().map(|group| group.bytes).sum(), gap))
}

/// The most frequent rate, and its share.
fn most_frequent(mut sorted: Vec<f64>) -> Option<(f64, f64)> {
    if sorted.len() < MIN_PAIRS {
        return None;
    }
    sorted.sort_by(f64::total_cmp);
    let (mut best, mut end) = (0..0, 0);
    for start in 0..sorted.len() {
        while end < sorted.len() && sorted[end] <= sorted[start] * EQUAL {
            end += 1;
        }
        if end - start > best.len() {
            best = start..end;
        }
    }
    let share = best.len() as f64 / sorted.len() as f64;
    // The median, because the clock's resolution spreads the rates to both sides.
    (share >= MIN_SHARE).then(|| (share, sorted[best.start + best.len() / 2]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::travelled;
    use super::*;

    /// Bursts of ten packets each round trip of 100 ms, which arrive at one packet per millisecond: 12 Mbit/s.
    fn bursts(count: i64, jitter: impl Fn(i64) -> i64) -> Vec<PathPacket> {
        let packet = |i: i64| {
            let sent = i / 10 * 100_000_000;
            let arrived = Some(sent + 50_000_000 + (i % 10 + 1) * 1_000_000 + jitter(i));
            travelled(sent, arrived)
        };
        (0..count).map(packet).collect()
    }

    #[test]
    fn bursts_of_a_sender_that_does_not_fill_the_link_show_its_rate() {
        let round_trip = Duration::from_millis(100);
        let (rate, _) = estimate(&bursts(200, |_| 0), round_trip);
        assert!((11.9e6..12.1e6).contains(&rate), "{rate}");
        // Every fifth packet is late.
        let (rate, _) = estimate(&bursts(200, |i| if i % 5 == 0 { 30_000_000 } else { 0 }), round_trip);
        assert!((11.5e6..12.5e6).contains(&rate), "{rate}");
    }

    #[test]
    fn packets_that_take_two_paths_in_turn_show_the_same_rate() {
        let (rate, _) = estimate(&bursts(200, |i| i % 2 * 50_000_000), Duration::from_millis(100));
        assert!((11.5e6..12.5e6).contains(&rate), "{rate}");
    }

    #[test]
    fn trains_show_the_rate_if_the_jitter_is_as_long_as_the_time_between_packets() {
        let round_trip = Duration::from_millis(100);
        // Bursts of 40 packets at one per 40 us, 300 Mbit/s, which arrive up to 60 us late, but in order.
        let packet = |i: i64| {
            let (sent, jitter) = (i / 40 * 100_000_000, i * i % 61 * 1000);
            travelled(sent, Some(sent + 50_000_000 + (i % 40 + 1) * 40_000 + jitter))
        };
        let mut packets: Vec<PathPacket> = (0..2000).map(packet).collect();
        for i in 1..packets.len() {
            packets[i].arrived = packets[i].arrived.max(packets[i - 1].arrived);
        }
        let (rate, is_least) = estimate(&packets, round_trip);
        assert!((270e6..330e6).contains(&rate) && !is_least, "{rate}");
    }

    #[test]
    fn the_pace_of_the_sender_is_not_the_rate_of_the_link() {
        // A packet each 10 ms, every second one over a path that is 200 ms longer: nothing waits.
        let paced = |i: i64, waits: i64| travelled(i * 10_000_000, Some(i * 10_000_000 + 50_000_000 + waits));
        let turns = |i: i64| paced(i, i % 2 * 200_000_000);
        let estimate = |packets: Vec<PathPacket>| estimate(&packets, Duration::from_millis(100));
        assert!(estimate((0..600).map(turns).collect()).1);
        // The ACK clock repeats the rate of a link whose queue is never empty.
        let clocked = |i: i64| paced(i, if i < 10 { i * 1_000_000 } else { 60_000_000 });
        let (rate, is_least) = estimate((0..600).map(clocked).collect());
        assert!((1.1e6..1.3e6).contains(&rate) && !is_least, "{rate}");
    }

    #[test]
    fn acknowledgments_of_two_packets_show_the_same_rate() {
        let delayed = |i: i64| if i % 2 == 0 { 1_000_000 } else { 0 };
        let (rate, _) = estimate(&bursts(200, delayed), Duration::from_millis(100));
        assert!((11.5e6..12.5e6).contains(&rate), "{rate}");
    }
}
