//! A link whose rate was recorded: a trace lists when packets may leave, as for the `mm-link` of mahimahi (Netravali et
//! al., Mahimahi: Accurate Record-and-Replay for HTTP, USENIX ATC 2015).
//!
//! Each line of a trace is a time in whole milliseconds: an opportunity to send 1504 bytes. What mahimahi does
//! (`link_queue.cc`):
//! - A packet counts with four bytes more than its size, those of the header of the TUN device.
//! - An opportunity sends waiting packets one after the other. The rest of a packet for which it has no room leaves with
//!   the next one; if no packet is left, the rest of the opportunity is lost.
//! - A packet that arrives in the millisecond of an opportunity, or later, is too late for it.
//! - After the last line the trace begins again, and that line's time counts as the new zero.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use reknit_config::KeyError;
use reknit_units::{Bytes, Capacity, Duration, Instant, Rate};
use serde::Deserialize;

use super::{Departures, DropReason, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::queue::{QueueSize, hundred_packets};
use crate::random::StreamId;

/// The bytes that leave with an opportunity.
const OPPORTUNITY: u64 = 1504;
/// The bytes by which a packet counts more than its size.
const HEADER: u64 = 4;
/// The largest trace: some ten million opportunities.
const LARGEST: u64 = 128 << 20;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateTrace {
    /// A file with a time in milliseconds per line, in order of time: when a packet of 1500 bytes may leave.
    pub file: Option<PathBuf>,
    /// The same times, without a file.
    #[serde(default)]
    pub at_ms: Vec<u64>,
    /// Propagation delay.
    #[serde(default)]
    pub delay: Duration,
    /// Capacity of the queue, without the packet of which a part has left. In milliseconds it is for the mean rate.
    #[serde(default = "hundred_packets")]
    pub queue: QueueSize,
    #[serde(skip)]
    schedule: Arc<[u64]>,
}

impl RateTrace {
    /// The length of the trace.
    fn period(&self) -> Duration {
        Duration::from_millis(self.schedule.last().copied().unwrap_or_default())
    }

    /// The mean rate.
    fn mean(&self) -> Rate {
        let bits = self.schedule.len() as u128 * 8 * u128::from(OPPORTUNITY - HEADER);
        let ms = u128::from(self.schedule.last().copied().unwrap_or(1).max(1));
        Rate::from_bits_per_second(u64::try_from(bits * 1000 / ms).unwrap_or(u64::MAX).max(1))
    }
}

impl fmt::Display for RateTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, period, RateTrace { delay, queue, .. }) = (self.mean(), self.period(), self);
        write!(f, "recorded rate, {rate} on average over {period}, {delay} one way, queue of {queue}")
    }
}

/// The times in a file.
fn read(file: &std::path::Path) -> Result<Vec<u64>, String> {
    let text = reknit_config::read_file(file, LARGEST)?;
    let number = |(i, line): (usize, &str)| {
        line.trim().parse().map_err(|_| format!("line {}: `{line}` is not a whole number of milliseconds", i + 1))
    };
    text.lines().enumerate().map(number).collect()
}

impl Parameters for RateTrace {
    type Running = Traced;

    fn checked(mut self) -> Result<RateTrace, KeyError> {
        let (key, times) = match &self.file {
            Some(_) if !self.at_ms.is_empty() => return Err(KeyError::new("file", "give either `file` or `at_ms`")),
            Some(file) => {
                let refuse = |message| KeyError::new("file", format!("{}: {message}", file.display()));
                ("file", read(file).map_err(refuse)?)
            }
            None => ("at_ms", self.at_ms.clone()),
        };
        if !times.is_sorted() {
            return Err(KeyError::new(key, "the times must be in order"));
        }
        match times.last() {
            None => Err(KeyError::new(key, "must have the time of at least one opportunity to send")),
            Some(0) => Err(KeyError::new(key, "the last time must be more than 0")),
            Some(_) => {
                self.schedule = times.into();
                Ok(self)
            }
        }
    }

    fn build(&self, _id: StreamId) -> Traced {
        Traced {
            period: self.period(),
            delay: self.delay,
            queue: self.queue.at(self.mean()),
            schedule: self.schedule.clone(),
            next: 0,
            began: Instant::ZERO,
            open: None,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
        }
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::RateTrace(self.clone()))
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.mean())
    }
}

/// An opportunity of which a part is used.
#[derive(Clone, Copy, Debug)]
struct Open {
    at: Instant,
    left: u64,
}

/// Packets leave in order, so each arrival determines when it leaves.
#[derive(Debug)]
pub(crate) struct Traced {
    schedule: Arc<[u64]>,
    period: Duration,
    delay: Duration,
    queue: Capacity,
    /// The next opportunity, and when this repetition of the trace began.
    next: usize,
    began: Instant,
    open: Option<Open>,
    /// The waiting packets: when the first byte of each leaves, and its size.
    waiting: VecDeque<(Instant, Bytes)>,
    waiting_bytes: Bytes,
}

impl Traced {
    /// The next opportunity after `at`.
    fn opportunity(&mut self, at: Instant) -> Open {
        // The last opportunity of a repetition is one period after its beginning.
        let whole = at.since(self.began).as_nanos() / self.period.as_nanos();
        if at > self.began && whole > 0 {
            (self.began, self.next) = (self.began + self.period * whole, 0);
        }
        loop {
            let time = self.began + Duration::from_millis(self.schedule[self.next]);
            self.next += 1;
            if self.next == self.schedule.len() {
                (self.began, self.next) = (self.began + self.period, 0);
            }
            if time > at {
                return Open { at: time, left: OPPORTUNITY };
            }
        }
    }

    /// Sends a packet that arrives at `at`: when its first and its last byte leave.
    fn send(&mut self, at: Instant, size: Bytes) -> (Instant, Instant) {
        let mut needed = size.0 + HEADER;
        let mut first = None;
        loop {
            let usable = self.open.filter(|open| open.at > at && open.left > 0);
            let open = usable.unwrap_or_else(|| self.opportunity(at));
            let used = needed.min(open.left);
            needed -= used;
            self.open = Some(Open { left: open.left - used, ..open });
            let first = *first.get_or_insert(open.at);
            if needed == 0 {
                return (first, open.at);
            }
        }
    }

    fn fits(&mut self, at: Instant, size: Bytes) -> bool {
        while let Some(&(leaves, waited)) = self.waiting.front()
            && leaves <= at
        {
            self.waiting_bytes -= waited;
            self.waiting.pop_front();
        }
        match self.queue {
            Capacity::Count(count) => self.waiting.len() < count.0 as usize,
            Capacity::Bytes(bytes) => self.waiting_bytes + size <= bytes,
        }
    }
}

impl Stage for Traced {
    fn on_packet(&mut self, at: Instant, item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        if !self.fits(at, item.size) {
            return StageOutcome::Drop(DropReason::QueueFull);
        }
        let (first, last) = self.send(at, item.size);
        self.waiting.push_back((first, item.size));
        self.waiting_bytes += item.size;
        StageOutcome::Departure(last + self.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Phases;

    fn us(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn trace(at_ms: &[u64], queue: &str) -> RateTrace {
        let queue = queue.parse().unwrap();
        let (file, delay) = (None, Duration::ZERO);
        RateTrace { file, at_ms: at_ms.to_vec(), delay, queue, schedule: Arc::new([]) }.checked().unwrap()
    }

    /// When each packet (arrival in microseconds, bytes) leaves; none if it is dropped.
    fn leaves(spec: &RateTrace, packets: &[(u64, u64)]) -> Vec<Option<u64>> {
        let mut stage = spec.build(StreamId { seed: 1, stage: 0, phases: Phases::Drawn });
        let mut exits = Departures::default();
        let leave = |(at, size): &(u64, u64)| {
            let item = StagePacket { slot: 0, flow: 0, size: Bytes(*size) };
            match stage.on_packet(us(*at), item, &mut exits) {
                StageOutcome::Departure(exit) => Some(exit.since(Instant::ZERO).as_millis()),
                _ => None,
            }
        };
        packets.iter().map(leave).collect()
    }

    /// mahimahi's `LinkQueue` step by step, with its clock of whole milliseconds and an unlimited queue.
    fn mahimahi(schedule: &[u64], packets: &[(u64, u64)]) -> Vec<Option<u64>> {
        let (mut next, mut base) = (0, 0);
        let mut waiting: VecDeque<(usize, u64)> = VecDeque::new();
        let mut left = vec![None; packets.len()];
        let mut catch_up = |now: u64, waiting: &mut VecDeque<(usize, u64)>| {
            while schedule[next] + base <= now {
                let this = schedule[next] + base;
                next = (next + 1) % schedule.len();
                base += if next == 0 { schedule[schedule.len() - 1] } else { 0 };
                let mut bytes = 1504;
                while bytes > 0
                    && let Some((packet, needed)) = waiting.front_mut()
                {
                    let used = bytes.min(*needed);
                    bytes -= used;
                    *needed -= used;
                    if *needed == 0 {
                        left[*packet] = Some(this);
                        waiting.pop_front();
                    }
                }
            }
        };
        for (i, (at, size)) in packets.iter().enumerate() {
            catch_up(at / 1000, &mut waiting);
            waiting.push_back((i, size + 4));
        }
        let end = packets.last().map_or(0, |(at, _)| at / 1000);
        for now in end.. {
            if waiting.is_empty() {
                break;
            }
            catch_up(now, &mut waiting);
        }
        left
    }

    #[test]
    fn an_opportunity_sends_one_large_packet_or_many_small_ones() {
        let spec = trace(&[5, 10, 10, 20], "100 packets");
        // One each; the third waits for the second opportunity at 10 ms.
        assert_eq!(leaves(&spec, &[(0, 1500), (0, 1500), (0, 1500)]), [5, 10, 10].map(Some));
        // 34 packets of 40 bytes count 44 bytes each; the rest of the 35th leaves with the next opportunity.
        let small = leaves(&spec, &[(0, 40); 35]);
        assert_eq!((small[33], small[34]), (Some(5), Some(10)));
        // What the first packet leaves of an opportunity is used by the second only if that is there in time.
        assert_eq!(leaves(&spec, &[(0, 700), (4999, 700), (5000, 700)]), [5, 5, 10].map(Some));
    }

    #[test]
    fn the_trace_repeats_from_its_last_line() {
        let spec = trace(&[2, 10], "100 packets");
        assert_eq!(leaves(&spec, &[(0, 1500); 5]), [2, 10, 12, 20, 22].map(Some));
        assert_eq!(leaves(&spec, &[(1_000_500, 1500), (1_002_000, 1500)]), [1002, 1010].map(Some));
    }

    #[test]
    fn the_queue_holds_what_has_not_begun_to_leave() {
        let spec = trace(&[10], "2 packets");
        assert_eq!(
            leaves(&spec, &[(0, 1500), (0, 1500), (0, 1500), (10_000, 1500)]),
            [Some(10), Some(20), None, Some(30)]
        );
        // 10 ms at 1.2 Mbit/s.
        let spec = trace(&[10], "10 ms");
        assert_eq!(leaves(&spec, &[(0, 1000), (0, 490), (0, 11)]), [Some(10), Some(10), None]);
    }

    #[test]
    fn every_packet_leaves_when_it_leaves_in_mahimahi() {
        let mut random = StreamId { seed: 7, stage: 0, phases: Phases::Fixed }.stream(0);
        for _ in 0..200 {
            let mut at = 0;
            let schedule: Vec<u64> = (0..=random.below(40))
                .map(|_| {
                    at += u64::from(random.below(6));
                    at
                })
                .collect();
            if schedule[schedule.len() - 1] == 0 {
                continue;
            }
            let mut at = 0;
            let sizes = [40, 52, 576, 1280, 1500];
            let packets: Vec<(u64, u64)> = (0..200)
                .map(|_| {
                    at += u64::from(random.below(4) * random.below(3000));
                    (at, sizes[random.below(5) as usize])
                })
                .collect();
            assert_eq!(
                leaves(&trace(&schedule, "1000 packets"), &packets),
                mahimahi(&schedule, &packets),
                "{schedule:?}"
            );
        }
    }

    #[test]
    fn a_trace_that_never_sends_is_refused() {
        let refused = |at_ms: &[u64]| {
            let spec = RateTrace { at_ms: at_ms.to_vec(), ..trace(&[1], "1 packets") };
            spec.checked().unwrap_err().to_string()
        };
        assert!(refused(&[]).contains("at least one opportunity"));
        assert!(refused(&[0, 0]).contains("more than 0"));
        assert!(refused(&[3, 2]).contains("in order"));
    }
}
