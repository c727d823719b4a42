//! # Withheld duplicate ACKs
//!
//! Yang: Improving the Performance of TCP in the Presence of Packet Reordering. Thesis, MIT, 2001, chapters 3 and 4.
//!
//! **What it changes.** The receiver alone. It keeps duplicate ACKs back until the missing segment arrives, and then
//! sends in their place the ACKs that arrival in order would have caused; or until more segments have overtaken it than
//! reordering ever explained, and then the duplicates go. Either are paced as the segments came.
//!
//! **State.** `count`: segments out of order in this epoch (the thesis's reordering counter); `old_nxt` and `first`:
//! RCV.NXT and the time when it began; `hole`: since when the first gap is open. `strides`: how far ahead of RCV.NXT
//! the highest byte was, in segments, at each of the last arrivals out of order; `thresh`: the largest of them.
//! `inter_arrival`: mean time between segments. `queue`: what is paced out.
//!
//! **Rules.** An arrival out of order counts; the first `imm` are told at once, the others are withheld. More than
//! `thresh` arrivals, or silence for `thresh` inter-arrival times, release the duplicates (§3.2.2). When RCV.NXT
//! advances the ACKs in order are released: one for each counted segment and one for that which came late (§4.2 counts
//! it too), half as many if ACKs are delayed (§3.2.3). If the gap was open for more than a round trip it was a loss,
//! and its strides do not count (§3.2.2).
//!
//! **Departures.** ACK numbers spread evenly (§4.3) are rounded down to ends of segments, and those that repeat are
//! left out: an ACK within a segment would be ACK division, a repeated one a duplicate. Where §4.3 turns the ACK flag
//! off, data segments leave without SACK instead (RFC 9293 demands the flag). Duplicates are spaced by the time that
//! all arrivals of the epoch took, those told at once included. A gap that remains when one closes begins an epoch of
//! its own. The thesis names no first threshold, no length of the ring, no gain and no bounds of the silence. A
//! duplicate segment is acknowledged at once with its DSACK; with SACK that tells all. A window that closes and the FIN
//! release everything.
//!
//! **Reproduces.** Yang, Figs. 5.1 to 5.8, with the sender `reno` without limited transmit and `imm = 2`. The variant
//! below has the sender `sack` with limited transmit, for which §3.2.3 wants no immediate duplicates: `imm = 0`.
//!
//! **Status.** Partial: faithful to the design, but the values that the thesis does not name are ours.

use std::collections::VecDeque;
use std::sync::Arc;

use reknit_tcp::seams::{AckAction, AckPolicy, Arrival, Disclosure, Plugin, RxFacts, TimedAck};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Duration, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::arrivals::{Arrivals, is_longer_than_a_round_trip};
use crate::base::delayed_ack;
use crate::composition::Composition;
use crate::part::{Algorithm, Part};
use crate::rule::Rule;
use crate::variant::{Side, Status, Variant};

/// The registry's entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "yang",
    aliases: &[],
    summary: "the receiver withholds duplicate ACKs and paces out ACKs in order once the late segment is here",
    source: "Yang, MIT 2001, chapters 3 and 4",
    side: Side::Receiver,
    peer_needs: "nothing",
    status: Status::Partial,
    compose: || Composition { ack_policy: Arc::new(Config { imm: 0, ..Config::default() }), ..Composition::default() },
};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Duplicate ACKs of each epoch that leave at once: 2, or 0 if the sender does limited transmit (§3.2.3) or SACK,
    /// whose scoreboard adds up what they tell.
    #[schemars(range(min = 0, max = 1000))]
    pub imm: u32,
    /// The threshold before anything was reordered, in segments.
    #[schemars(range(min = 0, max = 1000))]
    pub thr0: u32,
    /// Strides that count: the last so many (§4.1).
    #[schemars(range(min = 1, max = 65_536))]
    pub ring: u32,
    /// The gain of the mean inter-arrival time is 1 divided by this (§3.2.2).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub gain: u32,
    /// The shortest silence that releases the duplicates.
    pub min_hold: Duration,
    /// The longest.
    pub max_hold: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            imm: 2,
            thr0: 3,
            ring: 128,
            gain: 8,
            min_hold: Duration::from_millis(1),
            max_hold: Duration::from_millis(200),
        }
    }
}

impl Algorithm for Config {
    const NAME: &'static str = "yang";
    const SOURCE: &'static str = include_str!("yang.rs");
    const RULES: &'static [Rule] = &[Rule::Withholds];
}

impl Part<dyn AckPolicy> for Config {
    fn build(&self) -> Box<dyn AckPolicy> {
        Box::new(Yang::new(self))
    }
}

/// ACKs that wait in the queue at most.
const MAX_QUEUE: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is missing.
    Idle,
    /// Duplicates are withheld, until this moment if nothing arrives.
    Hold(Instant),
    /// The gap is taken for a loss: duplicates leave as they arise.
    Released,
}

/// An ACK that waits for its time.
#[derive(Clone, Copy, Debug)]
struct Paced {
    at: Instant,
    ack: Offset,
    /// A duplicate ACK, which leaves although it acknowledges nothing new.
    duplicate: bool,
    /// The delayed ACK of data in order: the next segment in order may replace it.
    delayed: bool,
}

/// ACKs that are being put into the queue.
#[derive(Clone, Copy, Debug)]
struct Pacing {
    next: Instant,
    gap: Duration,
    /// The queue was empty.
    at_once: bool,
}

#[derive(Debug)]
struct Yang {
    config: Config,
    /// What a segment in order causes.
    in_order: Box<dyn AckPolicy>,
    phase: Phase,
    count: u32,
    old_nxt: Offset,
    first: Instant,
    hole: Instant,
    thresh: u32,
    strides: VecDeque<u32>,
    /// Strides of this epoch, which count only if it was reordering.
    pending: VecDeque<u32>,
    inter_arrival: Option<Duration>,
    last_arrival: Instant,
    arrivals: Arrivals,
    queue: VecDeque<Paced>,
    /// RCV.NXT.
    rcv_nxt: Offset,
    /// What has been acknowledged while the queue holds more.
    told: Offset,
    /// Something has arrived of which the sender is not to know yet.
    hidden: bool,
    /// One past the FIN, once a segment carried it.
    fin: Option<Offset>,
}

impl Yang {
    fn new(config: &Config) -> Yang {
        Yang {
            in_order: delayed_ack::Config::default().build(),
            phase: Phase::Idle,
            count: 0,
            old_nxt: Offset::SYN,
            first: Instant::ZERO,
            hole: Instant::ZERO,
            thresh: config.thr0.max(1),
            strides: VecDeque::new(),
            pending: VecDeque::new(),
            inter_arrival: None,
            last_arrival: Instant::NEVER,
            arrivals: Arrivals::default(),
            queue: VecDeque::new(),
            rcv_nxt: Offset::SYN,
            told: Offset::SYN,
            hidden: false,
            fin: None,
            config: config.clone(),
        }
    }

    /// §3.2.2: the mean time between segments.
    fn note_inter_arrival(&mut self, now: Instant) {
        if self.last_arrival.is_set() {
            let sample = now.since(self.last_arrival);
            let gain = u64::from(self.config.gain.max(1));
            let mean = self.inter_arrival.unwrap_or(sample);
            self.inter_arrival = Some((mean * (gain - 1) + sample) / gain);
        }
        self.last_arrival = now;
    }

    /// §3.2.2, Fig. 3.2: how far the highest byte is ahead of the next one expected.
    fn note_stride(&mut self, rx: &RxFacts<'_>) {
        let stride = rx.highest.since(rx.rcv_nxt).0.div_ceil(rx.rmss.0.max(1));
        push_bounded(&mut self.pending, stride as u32, self.config.ring);
    }

    /// §3.2.2: the strides count unless the gap was a loss, and the largest of the last ones is the threshold.
    fn learn(&mut self, rx: &RxFacts<'_>) {
        let loss_like = is_longer_than_a_round_trip(rx, self.hole);
        for stride in self.pending.drain(..).filter(|_| !loss_like) {
            push_bounded(&mut self.strides, stride, self.config.ring);
        }
        self.thresh = self.strides.iter().copied().max().unwrap_or(self.thresh).max(1);
    }

    /// §3.2.2: how long silence may last.
    fn hold(&self) -> Duration {
        let (min, max) = (self.config.min_hold, self.config.max_hold);
        let expected = self.inter_arrival.map_or(max, |mean| mean * u64::from(self.thresh));
        expected.min(max).max(min)
    }

    fn begin_epoch(&mut self, now: Instant, rcv_nxt: Offset) {
        self.count = 0;
        self.old_nxt = rcv_nxt;
        self.first = now;
        self.phase = Phase::Hold(now + self.hold());
    }

    /// §3.2.1: a segment overtook another.
    fn on_out_of_order(&mut self, rx: &RxFacts<'_>) -> AckAction {
        if self.phase == Phase::Idle {
            self.begin_epoch(rx.now, rx.rcv_nxt);
            self.hole = rx.now;
        }
        self.count += 1;
        self.note_stride(rx);
        let Phase::Hold(_) = self.phase else { return self.acknowledge(rx.now, true) };
        self.phase = Phase::Hold(rx.now + self.hold());
        let is_told = self.count <= self.config.imm;
        self.hidden |= !is_told;
        if self.count > self.thresh {
            return self.release_duplicates(rx.now, is_told);
        }
        if is_told { self.acknowledge(rx.now, true) } else { AckAction::Withhold }
    }

    /// An ACK of everything: now, or behind those that wait.
    fn acknowledge(&mut self, now: Instant, duplicate: bool) -> AckAction {
        self.drop_delayed();
        match self.queue.back() {
            None => AckAction::Now,
            Some(last) => {
                let paced = Paced { at: now.max(last.at), ack: self.rcv_nxt, duplicate, delayed: false };
                self.enqueue(paced);
                AckAction::Withhold
            }
        }
    }

    /// §3.2.3: as many duplicates as were withheld, at the pace at which the segments came. The first, which leaves at
    /// once, is the answer. `at_hand`: one more is due, which was not to be withheld.
    fn release_duplicates(&mut self, now: Instant, at_hand: bool) -> AckAction {
        self.phase = Phase::Released;
        // What an earlier epoch has left above the gap wants to be told as well.
        let at_least = u32::from(at_hand || self.hidden);
        let withheld = self.count.saturating_sub(self.config.imm).max(at_least);
        self.hidden = false;
        let gap = now.since(self.first) / u64::from(self.count.max(1));
        let mut pacing = self.begin_pacing(now, gap);
        for _ in 0..withheld {
            self.pace(&mut pacing, self.rcv_nxt, true);
        }
        self.first_leaves(&pacing)
    }

    /// §3.2.3 and §4.3: the ACKs that arrival in order would have caused.
    fn release_in_order(&mut self, now: Instant, delayed_acks: bool) -> AckAction {
        let segments = self.count + 1;
        let n = u64::from(if delayed_acks { segments.div_ceil(2) } else { segments }).min(MAX_QUEUE as u64);
        let span = self.rcv_nxt.since(self.old_nxt).0;
        let mut pacing = self.begin_pacing(now, now.since(self.first) / n);
        let mut last = self.old_nxt;
        for j in 1..n {
            let even = self.old_nxt + Bytes(span * j / n);
            let Some(ack) = self.arrivals.segment_end(even).filter(|ack| *ack > last) else { continue };
            self.pace(&mut pacing, ack, false);
            last = ack;
        }
        self.pace(&mut pacing, self.rcv_nxt, false);
        self.first_leaves(&pacing)
    }

    /// What is paced out follows what waits; the first of it leaves now if nothing does.
    fn begin_pacing(&mut self, now: Instant, gap: Duration) -> Pacing {
        self.drop_delayed();
        Pacing { next: self.queue.back().map_or(now, |last| last.at.max(now)), gap, at_once: self.queue.is_empty() }
    }

    fn pace(&mut self, pacing: &mut Pacing, ack: Offset, duplicate: bool) {
        self.enqueue(Paced { at: pacing.next, ack, duplicate, delayed: false });
        pacing.next = pacing.next + pacing.gap;
    }

    fn first_leaves(&mut self, pacing: &Pacing) -> AckAction {
        match self.queue.pop_front_if(|_| pacing.at_once) {
            Some(first) => {
                self.told = first.ack;
                AckAction::Now
            }
            None => AckAction::Withhold,
        }
    }

    fn enqueue(&mut self, paced: Paced) {
        if self.queue.len() == MAX_QUEUE {
            self.queue.pop_back();
        }
        self.queue.push_back(paced);
    }

    fn drop_delayed(&mut self) {
        self.queue.pop_back_if(|last| last.delayed);
    }

    /// RCV.NXT advanced past the gap (§4.2).
    fn on_resolved(&mut self, rx: &RxFacts<'_>) -> AckAction {
        self.learn(rx);
        let action = match self.phase {
            Phase::Hold(_) => self.release_in_order(rx.now, rx.config.ack_every > Segments(1)),
            Phase::Idle | Phase::Released => self.acknowledge(rx.now, false),
        };
        self.in_order.on_ack_sent();
        self.arrivals.forget_below(rx.rcv_nxt);
        if rx.gaps {
            self.begin_epoch(rx.now, rx.rcv_nxt);
            self.hole = self.arrivals.oldest().unwrap_or(rx.now);
        } else {
            self.phase = Phase::Idle;
            self.count = 0;
            self.hidden = false;
        }
        action
    }

    /// Nothing was missing. As without this policy, but behind the ACKs that wait.
    fn on_in_order(&mut self, rx: &RxFacts<'_>) -> AckAction {
        let action = self.in_order.on_data(rx);
        match (action, self.queue.back().copied()) {
            (_, None) => action,
            (AckAction::By(at), Some(last)) => {
                self.drop_delayed();
                let at = if last.delayed { last.at } else { at.max(last.at) };
                self.enqueue(Paced { at, ack: rx.rcv_nxt, duplicate: false, delayed: true });
                AckAction::Withhold
            }
            (_, Some(_)) => {
                self.in_order.on_ack_sent();
                self.acknowledge(rx.now, false)
            }
        }
    }

    /// Everything is acknowledged at once: a closed window must be told of, and after the FIN nothing is to come.
    fn flush(&mut self) -> AckAction {
        self.queue.clear();
        self.hidden = false;
        AckAction::Now
    }
}

fn push_bounded(ring: &mut VecDeque<u32>, value: u32, len: u32) {
    if ring.len() >= len.max(1) as usize {
        ring.pop_front();
    }
    ring.push_back(value);
}

impl AckPolicy for Yang {
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction {
        self.note_inter_arrival(rx.now);
        self.rcv_nxt = rx.rcv_nxt;
        if rx.fin {
            self.fin = Some(rx.end);
        }
        if rx.arrival != Arrival::InOrder {
            self.arrivals.note(rx);
        }
        let action = match rx.arrival {
            Arrival::InOrder => self.on_in_order(rx),
            Arrival::OutOfOrder => self.on_out_of_order(rx),
            Arrival::FillsGap => self.on_resolved(rx),
            Arrival::Duplicate => {
                self.hidden = false;
                AckAction::Now
            }
        };
        let all_is_here = self.fin.is_some_and(|fin| fin <= rx.rcv_nxt);
        let is_last_chance = all_is_here || rx.window == Bytes::ZERO;
        match self.queue.is_empty() {
            false if is_last_chance => self.flush(),
            true if all_is_here => AckAction::Now,
            _ => action,
        }
    }

    fn on_ack_sent(&mut self) {
        if self.queue.is_empty() {
            self.in_order.on_ack_sent();
        }
    }

    fn deadline(&self) -> Instant {
        let hold = if let Phase::Hold(until) = self.phase { until } else { Instant::NEVER };
        self.queue.front().map_or(hold, |paced| paced.at.min(hold))
    }

    fn on_timer(&mut self, now: Instant) -> Option<TimedAck> {
        if matches!(self.phase, Phase::Hold(until) if until <= now)
            && self.release_duplicates(now, false) == AckAction::Now
        {
            return Some(TimedAck { ack: self.told, sack: true });
        }
        while let Some(paced) = self.queue.pop_front_if(|paced| paced.at <= now) {
            if paced.delayed {
                self.in_order.on_ack_sent();
            }
            if paced.duplicate || paced.ack > self.told {
                self.told = paced.ack;
                return Some(TimedAck { ack: paced.ack, sack: !self.hidden });
            }
        }
        None
    }

    fn disclosure(&self) -> Disclosure {
        let ack = if self.queue.is_empty() { Offset::MAX } else { self.told };
        Disclosure { ack, sack: !self.hidden }
    }
}

impl Plugin for Yang {
    fn heap_size(&self) -> usize {
        let strides = self.strides.capacity() + self.pending.capacity();
        let own = strides * size_of::<u32>() + self.queue.capacity() * size_of::<Paced>();
        own + size_of_val(&*self.in_order) + self.in_order.heap_size() + self.arrivals.heap_size()
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::experiment::Experiment;
    use reknit_units::Bytes;

    use super::*;

    const SMSS: u64 = 1000;

    /// Segments `numbers` reach a receiver that has everything up to `have`; the threshold and the strides at last.
    fn strides(yang: &mut Yang, have: u64, numbers: impl IntoIterator<Item = u64>) -> Vec<u32> {
        let position = |n: u64| Offset::DATA + Bytes(n * SMSS);
        let mut highest = position(have);
        for n in numbers {
            highest = highest.max(position(n));
            let (config, experiment) = (reknit_tcp::Config::default(), Experiment::default());
            let rx = RxFacts {
                now: Instant::ZERO,
                config: &config,
                arrival: Arrival::OutOfOrder,
                start: position(n - 1),
                end: position(n),
                rcv_nxt: position(have),
                highest,
                gaps: true,
                newer_blocks: 0,
                rmss: Bytes(SMSS),
                fin: false,
                window: Bytes(1 << 20),
                timestamp: None,
                experiment: &experiment,
                dropped: None,
                rtt: None,
            };
            yang.on_data(&rx);
            yang.learn(&rx);
        }
        yang.strides.iter().copied().collect()
    }

    #[test]
    fn the_stride_is_that_of_the_highest_segment() {
        let mut yang = Yang::new(&Config::default());
        assert_eq!(strides(&mut yang, 5, [7, 9, 11]), [2, 4, 6]);
        assert_eq!(yang.thresh, 6);
    }

    #[test]
    fn old_strides_are_forgotten() {
        let mut yang = Yang::new(&Config::default());
        strides(&mut yang, 5, [7, 9, 11]);
        for n in 0..128 {
            assert_eq!(yang.thresh, 6, "after {n}");
            strides(&mut yang, 5, [7]);
        }
        assert_eq!(yang.thresh, 2);
    }
}
