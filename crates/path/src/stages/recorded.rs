//! A recorded path: each packet gets the delay or loss of a packet in a measurement, in order, or by time.
//!
//! By number, a faster or slower sender would meet an outage after as many packets, not after as many seconds. By time,
//! each packet gets the delay or loss of one that was sent at about that time. The measured packets are
//! used one after the other, because losses come in runs, and paths alternate. Once the next one is too far from the
//! present (the sender is faster or slower than the measured one), another place near the present is drawn.

use std::fmt;
use std::path::PathBuf;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant};
use serde::Deserialize;

use super::{Departures, DropReason, Link, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// A delay, or the word `lost`, for each packet.
    #[serde(default)]
    pub packets: Vec<String>,
    /// A file with the same, one per line; `#` begins a comment.
    pub file: Option<PathBuf>,
    /// When each of `packets` was sent, in order of time. A packet then gets the delay or loss of one that was sent at the
    /// same time since the beginning, instead of the one with its number.
    #[serde(default)]
    pub at: Vec<Duration>,
    /// With `at`: how far in time that packet may be from its own time, if at least 32 are that close. With `0 ms`, it
    /// is always the last one before.
    #[serde(default)]
    pub within: Duration,
    /// Whether the recording starts over after the last packet. Otherwise all further packets pass without delay.
    #[serde(default = "yes")]
    pub repeat: bool,
    /// Whether packets leave in the order in which they came: one with a short delay waits for those before it. Otherwise
    /// it overtakes them.
    #[serde(default)]
    pub keep_order: bool,
    #[serde(skip)]
    delays: Vec<Option<Duration>>,
}

fn yes() -> bool {
    true
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = self.delays.iter().filter(|delay| delay.is_none()).count();
        write!(f, "recorded delays of {} packets, {lost} of them lost", self.delays.len())?;
        f.write_str(if self.at.is_empty() { "" } else { ", by time" })?;
        f.write_str(if self.keep_order { ", in order" } else { "" })?;
        f.write_str(if self.repeat { ", repeated" } else { "" })
    }
}

/// The largest recording: about ten million packets.
const LARGEST: u64 = 128 << 20;

fn delay_or_lost(text: &str) -> Result<Option<Duration>, String> {
    match text.trim() {
        "lost" => Ok(None),
        delay => delay.parse().map(Some).map_err(|error| format!("{error}, or `lost`")),
    }
}

impl Parameters for Recorded {
    type Running = Replaying;

    fn checked(mut self) -> Result<Recorded, KeyError> {
        for (i, text) in self.packets.iter().enumerate() {
            self.delays.push(delay_or_lost(text).map_err(|message| KeyError::new(format!("packets[{i}]"), message))?);
        }
        if let Some(file) = &self.file {
            let refuse = |message: String| KeyError::new("file", format!("{}: {message}", file.display()));
            let text = reknit_config::read_file(file, LARGEST).map_err(refuse)?;
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            for (i, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
                self.delays.push(delay_or_lost(line).map_err(|message| refuse(format!("line {}: {message}", i + 1)))?);
            }
        }
        if !self.at.is_empty() && self.at.len() != self.packets.len() {
            let message = format!("must have one time for each of the {} `packets`", self.packets.len());
            return Err(KeyError::new("at", message));
        }
        if !self.at.is_sorted() {
            return Err(KeyError::new("at", "must be in order of time"));
        }
        if self.at.is_empty() && !self.within.is_zero() {
            return Err(KeyError::new("within", "is allowed only with `at`"));
        }
        match (self.delays.is_empty(), self.packets.is_empty() || self.file.is_none()) {
            (true, _) => Err(KeyError::new("packets", "give the packets, or a `file` with at least one")),
            (false, false) => Err(KeyError::new("file", "give either `packets` or `file`")),
            (false, true) => Ok(self),
        }
    }

    fn build(&self, id: StreamId) -> Replaying {
        let last_exit = Instant::ZERO;
        let Some(last) = self.at.last() else {
            return Replaying::ByNumber(ByNumber { spec: self.clone(), next: 0, last_exit });
        };
        let span = *last + Duration::from_nanos(1);
        Replaying::ByTime(ByTime { spec: self.clone(), span, place: id.stream(0), next: None, last_exit })
    }

    /// The smallest delay of the recording.
    fn in_order(&self) -> Option<Spec> {
        let delay = self.delays.iter().flatten().min().copied()?;
        Some(Spec::Link(Link { delay, ..Link::default() }))
    }
}

/// A recording in operation, by what decides which of its packets comes next.
#[derive(Debug)]
pub(crate) enum Replaying {
    ByNumber(ByNumber),
    ByTime(ByTime),
}

impl Stage for Replaying {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        match self {
            Replaying::ByNumber(recording) => recording.pass(at),
            Replaying::ByTime(recording) => recording.pass(at),
        }
    }

    fn reorders(&self) -> bool {
        let spec = match self {
            Replaying::ByNumber(recording) => &recording.spec,
            Replaying::ByTime(recording) => &recording.spec,
        };
        !spec.keep_order
    }
}

#[derive(Debug)]
pub(crate) struct ByNumber {
    spec: Recorded,
    next: usize,
    /// When the last packet leaves, if the order is kept.
    last_exit: Instant,
}

impl ByNumber {
    fn pass(&mut self, at: Instant) -> StageOutcome {
        if self.next == self.spec.delays.len() {
            if !self.spec.repeat {
                return self.spec.outcome(at, Some(Duration::ZERO), &mut self.last_exit);
            }
            self.next = 0;
        }
        let recorded = self.spec.delays[self.next];
        self.next += 1;
        self.spec.outcome(at, recorded, &mut self.last_exit)
    }
}

impl Recorded {
    fn outcome(&self, at: Instant, recorded: Option<Duration>, last_exit: &mut Instant) -> StageOutcome {
        let Some(delay) = recorded else { return StageOutcome::Drop(DropReason::Lost) };
        let exit = at + delay;
        if !self.keep_order {
            return StageOutcome::Departure(exit);
        }
        *last_exit = exit.max(*last_exit);
        StageOutcome::Departure(*last_exit)
    }
}

/// The least number of packets among which one is chosen.
const LEAST: usize = 32;

#[derive(Debug)]
pub(crate) struct ByTime {
    spec: Recorded,
    /// The length of the recording.
    span: Duration,
    place: Stream,
    next: Option<usize>,
    /// When the last packet leaves, if the order is kept.
    last_exit: Instant,
}

impl ByTime {
    /// The measured packets that are close to this time: the first, and the one after the last.
    fn near(&self, now: Duration) -> (usize, usize) {
        let Recorded { at, within, .. } = &self.spec;
        let first = at.partition_point(|sent| *sent + *within < now);
        let end = at.partition_point(|sent| *sent <= now + *within);
        if end - first >= LEAST {
            return (first, end);
        }
        let middle = at.partition_point(|sent| *sent <= now);
        let first = middle.saturating_sub(LEAST / 2).min(at.len().saturating_sub(LEAST));
        (first, (first + LEAST).min(at.len()))
    }

    fn choose(&mut self, now: Duration) -> usize {
        if self.spec.within.is_zero() {
            return self.spec.at.partition_point(|sent| *sent <= now).saturating_sub(1);
        }
        let (first, end) = self.near(now);
        let next = self.next.filter(|next| (first..end).contains(next));
        let chosen = next.unwrap_or_else(|| first + self.place.below((end - first) as u32) as usize);
        self.next = Some(chosen + 1);
        chosen
    }

    fn pass(&mut self, at: Instant) -> StageOutcome {
        let mut now = at.since(Instant::ZERO);
        if now >= self.span {
            if !self.spec.repeat {
                return self.spec.outcome(at, Some(Duration::ZERO), &mut self.last_exit);
            }
            now = Duration::from_nanos(now.as_nanos() % self.span.as_nanos());
        }
        let chosen = self.choose(now);
        self.spec.outcome(at, self.spec.delays[chosen], &mut self.last_exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Phases;
    use reknit_units::Bytes;

    const MS: Duration = Duration::from_millis(1);

    /// One packet each millisecond for a second; those sent from 300 to 400 ms are lost, and every second one is late.
    fn second(within: &str) -> Recorded {
        let fate = |i: u64| if (300..400).contains(&i) { "lost" } else { ["0 ms", "50 ms"][(i % 2) as usize] };
        let spec = Recorded {
            packets: (0..1000).map(|i| fate(i).to_owned()).collect(),
            file: None,
            at: (0..1000).map(|i| MS * i).collect(),
            within: within.parse().unwrap(),
            repeat: true,
            keep_order: false,
            delays: Vec::new(),
        };
        spec.checked().unwrap()
    }

    /// The delays and losses of packets that are sent at this interval.
    fn fates(spec: &Recorded, interval: Duration, count: u64, seed: u64) -> Vec<(Duration, Option<Duration>)> {
        let mut stage = spec.build(StreamId { seed, stage: 0, phases: Phases::Drawn });
        let mut exits = Departures::default();
        let item = StagePacket { slot: 0, flow: 0, size: Bytes(1000) };
        let fate = |i| {
            let at = Instant::ZERO + interval * i;
            match stage.on_packet(at, item, &mut exits) {
                StageOutcome::Departure(exit) => (interval * i, Some(exit.since(at))),
                _ => (interval * i, None),
            }
        };
        (0..count).map(fate).collect()
    }

    #[test]
    fn by_time_a_faster_sender_meets_the_outage_when_it_was() {
        for seed in 1..20 {
            let fates = fates(&second("20 ms"), Duration::from_micros(100), 10_000, seed);
            for (at, fate) in fates {
                if fate.is_none() {
                    assert!((279..421).contains(&at.as_millis()), "{at}");
                } else {
                    assert!(!(320..380).contains(&at.as_millis()), "{at}");
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_recording_is_kept() {
        let fates = fates(&second("20 ms"), MS, 300, 1);
        let alternates = fates.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
        assert!(alternates > 240, "{alternates}");
    }

    #[test]
    fn without_tolerance_the_last_packet_before_counts_and_the_recording_repeats() {
        let fates = fates(&second("0 ms"), MS, 1700, 1);
        assert_eq!([3, 350, 999].map(|i: usize| fates[i].1), [Some(MS * 50), None, Some(MS * 50)]);
        assert_eq!(fates.iter().filter(|(_, fate)| fate.is_none()).count(), 200);
    }

    #[test]
    fn packets_of_a_path_that_becomes_shorter_keep_their_order() {
        for within in ["0 ms", "20 ms"] {
            let spec = Recorded { keep_order: true, delays: Vec::new(), ..second(within) };
            let fates = fates(&spec.checked().unwrap(), Duration::from_micros(100), 15_000, 1);
            let exits: Vec<Duration> = fates.iter().filter_map(|(at, delay)| Some(*at + (*delay)?)).collect();
            assert!(exits.is_sorted() && exits.len() < 15_000, "{within}");
            // A delay of 50 ms lasts only until it has passed.
            assert!(fates.iter().filter_map(|(_, delay)| *delay).all(|delay| delay <= MS * 50), "{within}");
        }
    }

    #[test]
    fn times_must_fit_the_packets() {
        let refused = |change: fn(&mut Recorded)| {
            let mut spec = Recorded { delays: Vec::new(), ..second("0 ms") };
            change(&mut spec);
            spec.checked().unwrap_err().to_string()
        };
        assert!(refused(|spec| spec.at.truncate(5)).contains("one time for each of the 1000 `packets`"));
        assert!(refused(|spec| spec.at.swap(3, 4)).contains("in order of time"));
        assert!(refused(|spec| (spec.at, spec.within) = (Vec::new(), MS)).contains("only with `at`"));
    }
}
