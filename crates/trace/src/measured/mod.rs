//! The path as measured: its bottleneck link, and what happens to packets after it.
//!
//! Another sender fills the queue of the bottleneck differently, so queueing delays and drops must be simulated. Only the
//! rest of the path can be taken from the capture. The rate of the bottleneck is estimated (`rate.rs`), and the measured
//! packets are sent through a link with that rate (`link.rs`). Whatever the link does not explain happened after it
//! (`fates.rs`): the path became longer, or the packet was late or lost.

mod fates;
mod file;
mod limits;
mod link;
mod mended;
mod outages;
mod rate;

pub(crate) use file::tcp;
use reknit_units::{Duration, Instant, Rate};

use crate::transit::{Departure, PacketFate};
use crate::{CapturePoint, DirectionReport, Transit};

/// Nanoseconds since the capture's first time, or on the sender's clock; differences may be negative, because the two ends'
/// clocks differ.
type Nanos = i64;

/// The longest time that counts, nine years. A damaged capture may have any time; sums of these do not overflow.
const LONGEST: Nanos = 1 << 58;
pub(crate) const LONGEST_SPAN: Duration = Duration::from_nanos(LONGEST.cast_unsigned());

/// Headers of IPv4 and TCP, bytes, and those of the timestamps option.
const HEADERS: u32 = 40;
const TIMESTAMPS: u32 = 12;
/// Fewer packets say nothing about a path.
const MIN_PACKETS: usize = 10;
/// Further packets are ignored.
pub(crate) const MAX_PACKETS: usize = 300_000;

/// The rate of a link is not far below what it has carried.
const NEARLY: f64 = 0.95;

/// A packet in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PathPacket {
    sent: Nanos,
    /// None: lost, or not known.
    arrived: Option<Nanos>,
    is_lost: bool,
    /// A retransmission. It is less certain which transmission of its data arrived.
    is_retransmission: bool,
    /// It looks lost at the sender, but has a timestamp: the receiver may have discarded it (PAWS).
    may_be_discarded: bool,
    /// When its data arrived, in this packet or in another.
    settled: Nanos,
    /// Bytes with headers, and without.
    size: u32,
    len: u32,
}

impl PathPacket {
    /// Whether it arrived is known.
    fn is_known(&self) -> bool {
        self.arrived.is_some() || self.is_lost
    }
}

/// What happened to a packet after the bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DelayAfterBottleneck {
    /// When it left the part of the path that is the same for all packets, since the beginning.
    at: Duration,
    /// How late it was; none: lost.
    late: Option<Duration>,
}

/// One direction of a path.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredPath {
    /// Bits per second of the bottleneck, Mbit/s.
    pub rate_mbit_s: f64,
    /// Whether that is only a lower limit, because nothing shows the rate of the link.
    pub rate_is_least: bool,
    /// Packets in the longest queue at the bottleneck.
    pub queue_packets: u32,
    /// Whether that queue overflowed. If not, it may be able to hold more.
    pub overflowed: bool,
    /// The shortest round trip.
    pub round_trip: Duration,
    /// Packets that the capture shows to have arrived or been lost, retransmissions included.
    pub packets: u64,
    /// Those that the bottleneck dropped.
    pub queue_drops: u64,
    /// Those that were lost elsewhere.
    pub lost: u64,
    /// Those that were late.
    pub late: u64,
    /// From the first packet, and the handshake before it, to the last.
    pub duration: Duration,
    /// The receiver's window, if it limited the transfer, bytes.
    pub receive_window: Option<u32>,
    /// The most packets in flight, if the sender's buffer limited them. None also for captures at the receiver, which do
    /// not show it.
    pub most_in_flight: Option<u64>,
    /// The share of that time in which no data was in flight: the application paused. None for captures at the receiver,
    /// which do not show it.
    pub idle: Option<f64>,
    /// How many bytes of data had arrived by which time, in the order of time.
    progress: Vec<(Duration, u64)>,
    /// From which time on the path's delay was longer, and by how much.
    delays: Vec<(Duration, Duration)>,
    /// The times during which all packets were lost: start and end.
    outages: Vec<(Duration, Duration)>,
    fates: Vec<DelayAfterBottleneck>,
    /// The `[tcp]` table of a path file.
    tcp: String,
    /// The direction that the path was measured from.
    source: String,
}

impl MeasuredPath {
    /// The path of `direction`, by the transits of its packets; its bottleneck has the given rate, if any.
    ///
    /// # Errors
    /// If the capture does not have the round trip, or too few packets.
    pub fn new(direction: &DirectionReport, transits: &[Transit], rate: Option<Rate>) -> Result<MeasuredPath, String> {
        let Some(round_trip) = &direction.round_trip else {
            return Err(format!(
                "stream {} has no RTT sample; capture both directions of the connection",
                direction.stream
            ));
        };
        let round_trip = Duration::from_secs_f64(round_trip.least_ms / 1e3).min(LONGEST_SPAN);
        let packets = travelled(direction, transits);
        let is_sender = direction.captured_at == CapturePoint::Sender;
        let nanos = round_trip.as_nanos().cast_signed();
        let limits = Limits {
            receive_window: limits::receive_window(direction),
            most_in_flight: if is_sender { limits::flight(&packets, nanos) } else { None },
        };
        let measured = Measured {
            idle: packets.first().and_then(|_| idle(&packets, transits)),
            packets,
            round_trip,
            acknowledged: direction.acknowledged_bytes,
            reorders: direction.verdicts.reordered > 0,
            limits,
            tcp: file::direction_tcp(direction, limits),
            source: file::source(direction),
        };
        measured.path(rate).map_err(|error| format!("stream {} {error}", direction.stream))
    }
}

/// What limited the data in flight, other than the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Limits {
    /// Bytes.
    receive_window: Option<u32>,
    /// Packets.
    most_in_flight: Option<u64>,
}

/// What is known of the packets of a path, before it is taken apart.
#[derive(Debug)]
pub(crate) struct Measured {
    /// In the order of sending.
    pub(crate) packets: Vec<PathPacket>,
    pub(crate) round_trip: Duration,
    /// Bytes that the receiver has received in order.
    pub(crate) acknowledged: u64,
    pub(crate) idle: Option<f64>,
    /// Packets were late. Otherwise the path keeps their order.
    pub(crate) reorders: bool,
    pub(crate) limits: Limits,
    /// The `[tcp]` table of the path file, and whose path it is.
    pub(crate) tcp: String,
    pub(crate) source: String,
}

impl Measured {
    /// The path; its bottleneck has the given rate, if any.
    pub(crate) fn path(self, rate: Option<Rate>) -> Result<MeasuredPath, String> {
        let Measured { packets, round_trip, .. } = &self;
        let round_trip = *round_trip;
        if packets.len() < MIN_PACKETS {
            return Err(format!("has too few packets to measure a path: at least {MIN_PACKETS} are needed"));
        }
        let (rate, rate_is_least) = match rate {
            Some(rate) => (rate.bits_per_second() as f64, false),
            None => rate::estimate(packets, round_trip),
        };
        let outages = outages::outages(packets, rate);
        let passed = link::pass(packets, &outages, rate);
        let began = packets[0].sent - round_trip.as_nanos().cast_signed();
        let since = |at: Nanos| Duration::from_nanos((at - began).max(0).cast_unsigned());
        let behind = fates::behind(packets, &passed, &outages, (round_trip, self.reorders), since);
        let arrivals = || packets.iter().filter_map(|packet| Some((packet.arrived?, packet.len)));
        // In a capture at the receiver, the two clocks differ: packets arrive as they leave the link, as if there were no delay.
        let offset = passed.transit;
        let mut progress: Vec<(Duration, u64)> = arrivals().map(|(at, len)| (since(at - offset), len.into())).collect();
        progress.sort_unstable_by_key(|(at, _)| *at);
        let mut sum = 0;
        for (_, bytes) in &mut progress {
            // What waits behind missing data when the capture ends has not arrived in order.
            sum = (sum + *bytes).min(self.acknowledged);
            *bytes = sum;
        }
        let full = rate::time_for(packets[0].size, rate).max(1.0);
        let longest = (passed.longest_wait as f64 / full).round();
        let product = round_trip.as_nanos() as f64 / full;
        let queue = if passed.overflows { longest } else { (longest * 1.25).max(product) };
        #[expect(clippy::cast_sign_loss, reason = "a number of packets")]
        let queue_packets = queue.clamp(10.0, 1e6) as u32;
        Ok(MeasuredPath {
            rate_mbit_s: rate * 1e-6,
            rate_is_least,
            queue_packets,
            overflowed: passed.overflows,
            round_trip,
            packets: packets.iter().filter(|packet| packet.is_known()).count() as u64,
            queue_drops: passed.drops(),
            lost: behind.fates.iter().filter(|fate| fate.late.is_none()).count() as u64
                + outages.iter().map(|outage| outage.len() as u64).sum::<u64>(),
            late: behind.late,
            duration: progress.last().map_or(Duration::ZERO, |(at, _)| *at),
            receive_window: self.limits.receive_window,
            most_in_flight: self.limits.most_in_flight,
            idle: self.idle,
            progress,
            delays: behind.delays,
            outages: behind.outages,
            fates: behind.fates,
            tcp: self.tcp,
            source: self.source,
        })
    }
}

/// A packet with a known time of sending and, unless it was lost, of arrival.
pub(crate) fn known(sent: i64, arrived: Option<i64>, size: u32, len: u32) -> PathPacket {
    let is_lost = arrived.is_none();
    let (sent, arrived) = (sent.clamp(-LONGEST, LONGEST), arrived.map(|at| at.clamp(-LONGEST, LONGEST)));
    let settled = arrived.unwrap_or(sent);
    PathPacket { sent, arrived, is_lost, is_retransmission: false, may_be_discarded: false, settled, size, len }
}

impl MeasuredPath {
    /// Bytes of data that had arrived after `span`, Mbit/s.
    pub fn goodput_mbit_s(&self, span: Duration) -> f64 {
        let until = self.progress.partition_point(|(at, _)| *at <= span);
        let bytes = until.checked_sub(1).map_or(0, |last| self.progress[last].1);
        bytes as f64 * 8e-6 / span.as_secs_f64().max(1e-9)
    }
}

/// What the bottleneck of `direction` carries by the transits of some packets, Mbit/s of data; none if they do not show it.
pub(crate) fn bottleneck(direction: &DirectionReport, transits: &[Transit]) -> Option<f64> {
    let packets = travelled(direction, transits);
    let size = packets.iter().map(|packet| packet.size).max()?;
    let headers = HEADERS + if direction.options.timestamps == Some(false) { 0 } else { TIMESTAMPS };
    let carries = rate::shown(&packets)? * 1e-6 * f64::from(size - headers) / f64::from(size);
    // Packets that are spread out for another reason show less than has passed.
    (carries >= NEARLY * direction.goodput_mbit_s).then_some(carries)
}

/// The packets in the order in which they were sent; segments that the host combines are taken apart.
fn travelled(direction: &DirectionReport, transits: &[Transit]) -> Vec<PathPacket> {
    let has_timestamps = direction.options.timestamps != Some(false);
    let headers = HEADERS + if has_timestamps { TIMESTAMPS } else { 0 };
    let segment = (direction.segment() as u32).max(1);
    let clock = Clock::of(transits);
    let departures = departures(transits, clock);
    let mut packets = Vec::with_capacity(transits.len());
    for (transit, sent) in transits.iter().zip(departures) {
        let is_lost = transit.outcome == PacketFate::Lost;
        let mut left = transit.len;
        while left > 0 {
            let len = left.min(segment);
            left -= len;
            packets.push(PathPacket {
                sent,
                arrived: arrival(transit).map(|at| clock.nanos(at)),
                is_lost,
                is_retransmission: transit.is_retransmission,
                may_be_discarded: is_lost && has_timestamps && matches!(transit.sent, Departure::At(_)),
                settled: clock.nanos(transit.settled),
                size: len + headers,
                len,
            });
        }
    }
    packets.sort_by_key(|packet| packet.sent);
    packets.truncate(MAX_PACKETS);
    packets
}

fn arrival(transit: &Transit) -> Option<Instant> {
    match transit.outcome {
        PacketFate::Arrived(at) => Some(at),
        PacketFate::Lost | PacketFate::Unknown => None,
    }
}

/// The clock of the capture.
#[derive(Clone, Copy, Debug)]
struct Clock {
    first: Instant,
}

impl Clock {
    fn of(transits: &[Transit]) -> Clock {
        Clock { first: transits.iter().map(|transit| transit.settled).min().unwrap_or_default() }
    }

    fn nanos(self, at: Instant) -> Nanos {
        let since = i128::from(at.as_nanos()) - i128::from(self.first.as_nanos());
        since.clamp((-LONGEST).into(), LONGEST.into()) as Nanos
    }
}

/// When each packet was sent. Timestamps count ticks of the sender's clock; without them, an original was sent before all
/// later ones arrived.
fn departures(transits: &[Transit], clock: Clock) -> Vec<Nanos> {
    let tick = tick(transits, clock).unwrap_or(1e6);
    let first_stamp = transits.iter().find_map(|transit| match transit.sent {
        Departure::Stamp(stamp) => Some(stamp),
        _ => None,
    });
    let mut overtaken_at = Nanos::MAX;
    let mut sent: Vec<Option<Nanos>> = Vec::with_capacity(transits.len());
    for transit in transits.iter().rev() {
        let arrived = arrival(transit).map_or(Nanos::MAX, |at| clock.nanos(at));
        overtaken_at = overtaken_at.min(arrived);
        sent.push(match (transit.sent, first_stamp) {
            (Departure::At(at), _) => Some(clock.nanos(at)),
            (Departure::Stamp(stamp), Some(first)) => {
                let since = f64::from(stamp.wrapping_sub(first).cast_signed()) * tick;
                Some((since as Nanos).clamp(-LONGEST, LONGEST))
            }
            _ if first_stamp.is_none() && overtaken_at < Nanos::MAX => Some(overtaken_at),
            _ => None,
        });
    }
    sent.reverse();
    let mut last = sent.iter().flatten().next().copied().unwrap_or_default();
    let known = |sent: Option<Nanos>| {
        last = sent.unwrap_or(last);
        last
    };
    sent.into_iter().map(known).collect()
}

/// Nanoseconds between two ticks of the sender's timestamps; close to a usual value, it is that value.
fn tick(transits: &[Transit], clock: Clock) -> Option<f64> {
    const USUAL: [f64; 5] = [1e3, 1e6, 4e6, 1e7, 1e8];
    let stamps = || {
        transits.iter().filter_map(|transit| match (transit.sent, arrival(transit)) {
            (Departure::Stamp(stamp), Some(at)) => Some((stamp, clock.nanos(at))),
            _ => None,
        })
    };
    let (first, last) = (stamps().next()?, stamps().next_back()?);
    let ticks = last.0.wrapping_sub(first.0).cast_signed();
    if ticks <= 0 {
        return None;
    }
    let tick = (last.1 - first.1) as f64 / f64::from(ticks);
    Some(USUAL.into_iter().find(|usual| (tick / usual - 1.0).abs() < 0.1).unwrap_or(tick))
}

/// The share of the time in which no data was in flight, if the capture shows it.
fn idle(packets: &[PathPacket], transits: &[Transit]) -> Option<f64> {
    matches!(transits.first()?.sent, Departure::At(_)).then(|| {
        let (first, mut busy_until) = (packets[0].sent, packets[0].sent);
        let mut idle = 0;
        for packet in packets {
            idle += (packet.sent - busy_until).max(0);
            busy_until = busy_until.max(packet.sent).max(packet.settled);
        }
        idle as f64 / ((busy_until - first) as f64).max(1.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of the usual size; one that does not arrive is lost.
    pub(super) fn travelled(sent: Nanos, arrived: Option<Nanos>) -> PathPacket {
        PathPacket {
            sent,
            arrived,
            is_lost: arrived.is_none(),
            is_retransmission: false,
            may_be_discarded: false,
            settled: 0,
            size: 1500,
            len: 1448,
        }
    }
}
