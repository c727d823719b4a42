//! # Withheld duplicate ACKs
//!
//! Yang: Improving the Performance of TCP in the Presence of Packet Reordering. Thesis, MIT, 2001, chapters 3 and 4.
//!
//! **What it changes.** Only the receiver. It withholds duplicate ACKs. If the missing segment arrives, it sends the
//! ACKs that in-order arrival would have caused instead. If more segments arrive out of order than the largest recent
//! stride, it sends the duplicates. In both cases it paces the ACKs at the rate at which the segments arrived.
//!
//! **State.** `count`: out-of-order segments in this epoch (the reordering counter of the thesis). `old_nxt` and
//! `first`: RCV.NXT and the time at the start of the epoch. `hole`: since when the first gap has been open. `strides`:
//! for each of the last out-of-order arrivals, how far the highest byte was ahead of RCV.NXT, in segments: with a single
//! gap, one more than the segments that overtook the missing one; with several gaps, more. `thresh`: the largest stride. `inter_arrival`: the mean time between segments. `queue`: the ACKs to be paced.
//!
//! **Rules.**
//! - Each out-of-order arrival is counted. The first `imm` of an epoch are acknowledged at once, the ACKs of the others
//!   are withheld.
//! - The duplicates are released after more than `thresh` out-of-order arrivals, or if no segment arrives for `thresh`
//!   inter-arrival times (§3.2.2).
//! - When RCV.NXT advances, the in-order ACKs are released: one for each counted segment and one for the late segment,
//!   or half as many with delayed ACKs. §3.2.3 has only the former; §4.2 increments the counter for any segment that is out of
//!   order, which we read as including the late one.
//! - If the gap was open for more than a round trip, it was a loss, and its strides are not used (§3.2.2). Without a
//!   measured RTT, a round trip is 100 ms.
//!
//! **Departures.** ACK numbers are spread evenly (§4.3), but rounded down to the ends of segments, and repeated numbers
//! are left out: an ACK within a segment would be ACK division, a repeated one a duplicate. Where §4.3 clears the ACK
//! flag, data segments are sent without SACK instead (RFC 9293 requires the flag). Duplicates are spaced by the mean
//! time between all arrivals of the epoch, including those acknowledged at once. If a gap remains when another one
//! closes, it begins a separate epoch. Strides change the threshold when the gap closes; in the thesis (§3.2) they do at
//! each arrival, so that the count could never exceed it. The time without arrivals is limited, to 1 to 200 ms by
//! default; the thesis has no limits. Released duplicates are not halved with delayed ACKs (§3.2.3). The thesis does not
//! specify the initial threshold, the number of strides kept, or the gain. A duplicate segment is acknowledged at once with its
//! DSACK; with SACK, that ACK also reports everything withheld. A closing window and the FIN release everything.
//!
//! **Choices.** The thesis' receiver serves `reno` without limited transmit, with `imm = 2`. The variant here is for a
//! `sack` sender with limited transmit, for which §3.2.3 requires no immediate duplicates: `imm = 0`.
//!
//! **Status.** Partial: the thesis gives every rule, but not the initial threshold, the number of strides kept, the gain,
//! and the least time without arrivals. The first two change the loss while learning, the others hardly anything. The
//! upper limit of the time without arrivals matters on long paths with loss: without it, timeouts are nearly twice as many.

use reknit_tcp::seams::{AckAction, AckPolicy, Arrival, PiggybackLimit, Plugin, RxFacts, TimedAck};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Duration, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use crate::algorithm::Algorithm;
use crate::base::arrivals::{Arrivals, is_longer_than_a_round_trip};
use crate::base::delayed_ack;
use crate::requirement::Requirement;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct YangConfig {
    /// Duplicate ACKs of each epoch that are sent at once: 2, or 0 if the sender uses limited transmit (§3.2.3) or
    /// SACK, because the sender's scoreboard adds up what they report.
    #[schemars(range(min = 0, max = 1000))]
    pub imm: u32,
    /// The threshold before any reordering has been seen, in segments.
    #[schemars(range(min = 0, max = 1000))]
    pub thr0: u32,
    /// The number of strides that are kept (§4.1).
    #[schemars(range(min = 1, max = 65_536))]
    pub ring: u32,
    /// The gain of the mean inter-arrival time is 1 divided by this (§3.2.2).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub gain: u32,
    /// The minimum time without arrivals after which the duplicates are released.
    pub min_hold: Duration,
    /// The maximum time without arrivals after which the duplicates are released.
    pub max_hold: Duration,
}

impl Default for YangConfig {
    fn default() -> YangConfig {
        YangConfig {
            imm: 2,
            thr0: 3,
            ring: 128,
            gain: 8,
            min_hold: Duration::from_millis(1),
            max_hold: Duration::from_millis(200),
        }
    }
}

impl Algorithm<dyn AckPolicy> for YangConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Withholds]
    }

    fn build(&self) -> Box<dyn AckPolicy> {
        Box::new(Yang::new(self))
    }
}

/// The maximum length of the queue.
const MAX_QUEUE: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is missing.
    Idle,
    /// Duplicates are withheld, until this time if nothing arrives.
    Hold(Instant),
    /// The gap is taken as a loss: duplicates are sent normally.
    Released,
}

/// An ACK that waits for its time.
#[derive(Clone, Copy, Debug)]
struct Paced {
    at: Instant,
    ack: Offset,
    /// A duplicate ACK; it is sent although it acknowledges nothing new.
    duplicate: bool,
    /// The delayed ACK for in-order data; the next in-order segment may replace it.
    delayed: bool,
}

/// The state of adding ACKs to the queue.
#[derive(Clone, Copy, Debug)]
struct Pacing {
    next: Instant,
    gap: Duration,
    /// The queue was empty.
    at_once: bool,
}

#[derive(Clone, Debug)]
struct Yang {
    config: YangConfig,
    /// The policy for in-order segments.
    in_order: Box<dyn AckPolicy>,
    phase: Phase,
    count: u32,
    old_nxt: Offset,
    first: Instant,
    hole: Instant,
    thresh: u32,
    strides: VecDeque<u32>,
    /// Strides of this epoch, used only if it was reordering.
    pending: VecDeque<u32>,
    inter_arrival: Option<Duration>,
    last_arrival: Instant,
    arrivals: Arrivals,
    queue: VecDeque<Paced>,
    /// RCV.NXT.
    rcv_nxt: Offset,
    /// The highest ACK sent while the queue holds more.
    told: Offset,
    /// Data has arrived that must not be reported to the sender yet.
    hidden: bool,
    /// One past the FIN, once it has arrived.
    fin: Option<Offset>,
}

impl Yang {
    fn new(config: &YangConfig) -> Yang {
        Yang {
            in_order: delayed_ack::DelayedConfig::default().build(),
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

    /// §3.2.2: the strides are used unless the gap was a loss; the threshold is the largest of the last ones.
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
        let needs_loss_reports = self.count <= self.config.imm;
        self.hidden |= !needs_loss_reports;
        if self.count > self.thresh {
            return self.release_duplicates(rx.now, needs_loss_reports);
        }
        if needs_loss_reports { self.acknowledge(rx.now, true) } else { AckAction::Withhold }
    }

    /// An ACK for everything received: now, or after the queued ones.
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

    /// §3.2.3: as many duplicates as were withheld, paced as the segments arrived. The first is sent at once, as the
    /// returned action. `at_hand`: one more is due, for the current segment.
    fn release_duplicates(&mut self, now: Instant, at_hand: bool) -> AckAction {
        self.phase = Phase::Released;
        // Data above the gap from an earlier epoch must be reported too.
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

    /// §3.2.3 and §4.3: the ACKs that in-order arrival would have caused.
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

    /// New ACKs follow the queued ones; if none is queued, the first is sent now.
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

    /// Nothing was missing: the normal ACKs, but after the queued ones.
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

    /// Acknowledges everything at once: a closed window must be reported, and nothing follows the FIN.
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

    fn disclosure(&self) -> PiggybackLimit {
        let ack = if self.queue.is_empty() { Offset::MAX } else { self.told };
        PiggybackLimit { ack, sack: !self.hidden }
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
    use reknit_tcp::experiment::ExperimentalOption;
    use reknit_units::Bytes;

    use super::*;

    const SMSS: u64 = 1000;

    /// Passes the segments `numbers` to a receiver that has everything up to `have`, and returns its strides.
    fn strides(yang: &mut Yang, have: u64, numbers: impl IntoIterator<Item = u64>) -> Vec<u32> {
        let position = |n: u64| Offset::DATA + Bytes(n * SMSS);
        let mut highest = position(have);
        for n in numbers {
            highest = highest.max(position(n));
            let (config, experiment) = (reknit_tcp::Config::default(), ExperimentalOption::default());
            let rx = RxFacts {
                now: Instant::ZERO,
                config: &config,
                arrival: Arrival::OutOfOrder,
                start: position(n - 1),
                end: position(n),
                rcv_nxt: position(have),
                highest,
                read: Offset::DATA,
                held: Bytes::ZERO,
                gaps: true,
                newer_blocks: 0,
                rmss: Bytes(SMSS),
                fin: false,
                push: false,
                window: Bytes(1 << 20),
                buffer_grew: false,
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
    fn the_stride_is_measured_from_the_highest_segment() {
        let mut yang = Yang::new(&YangConfig::default());
        assert_eq!(strides(&mut yang, 5, [7, 9, 11]), [2, 4, 6]);
        assert_eq!(yang.thresh, 6);
    }

    #[test]
    fn old_strides_are_forgotten() {
        let mut yang = Yang::new(&YangConfig::default());
        strides(&mut yang, 5, [7, 9, 11]);
        for n in 0..128 {
            assert_eq!(yang.thresh, 6, "after {n}");
            strides(&mut yang, 5, [7]);
        }
        assert_eq!(yang.thresh, 2);
    }
}
