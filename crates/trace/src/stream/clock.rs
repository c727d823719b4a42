//! Which of two packets was sent first, by their headers. [`super::data`] calls `on_new` for each packet with new data before it
//! is judged; the other functions only read: [`super::upstream`] calls them as a packet passes and as a range is decided. Owned by
//! [`super::data`].

use std::cmp::Ordering;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::sighting::CapturedSegment;

/// The evidence that is needed before IP identifications are assumed to be a counter. A small step gives much, a larger one little:
/// so do random numbers one in four times.
const ENOUGH: u32 = 8;
const SMALL_STEP: u16 = 16;
const LARGEST_STEP: u16 = 1 << 14;
/// Identifications are assumed not to wrap within this many packets of the capture.
const NEAR: u64 = 1 << 14;
/// After this many steps, it is known how the sender chooses them, until they jump.
const KNOWN: u32 = 1 << 10;
/// Each jump of a counter makes up for one in this many steps before it.
const OLDER: u32 = 64;
/// Two packets whose identifications are as close as this were sent shortly after each other, by a counter.
const CLOSE: u16 = 8;

/// What is known about a sender's timestamp clock and IP identification counter.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Clock {
    last_id: Option<u16>,
    /// Steps of the IP identification that look like a counter, the evidence that they give, and all steps.
    counted: u32,
    evidence: u32,
    steps: u32,
    /// The sum of these steps, and the time that they took: the counter may be that of the host.
    advanced: u64,
    /// Milliseconds, which may wrap.
    began: Option<u32>,
    took: u32,
    /// Steps that change the identification, counter or not.
    changed: u32,
    /// The packet before which the identification last jumped: those before and after it do not compare.
    jumped: u64,
    /// The first TSval and when it was seen, and the newest.
    first: Option<(u32, Instant)>,
    newest: Option<(u32, Instant)>,
}

impl Clock {
    /// A packet with new data.
    #[inline]
    pub(super) fn on_new(&mut self, seen: &CapturedSegment) {
        match (self.last_id, seen.ip_id()) {
            (Some(last), Some(id)) => {
                let step = id.wrapping_sub(last);
                if !(1..=LARGEST_STEP).contains(&step) {
                    self.on_other_step(ahead(id, last), seen);
                } else if self.steps < KNOWN {
                    self.on_step(step, seen);
                }
            }
            (None, Some(_)) => self.began = Some(millis(seen.at)),
            (_, None) => {}
        }
        self.last_id = seen.ip_id();
        if let Some(value) = seen.tsval() {
            self.first.get_or_insert((value, seen.at));
            self.newest = Some((value, seen.at));
        }
    }

    /// The IP identification of a packet with new data is a little larger than that of the packet before.
    fn on_step(&mut self, step: u16, seen: &CapturedSegment) {
        self.on_change(seen);
        self.counted += 1;
        self.changed += 1;
        self.evidence = self.evidence.saturating_add(if step <= SMALL_STEP { ENOUGH / 2 } else { 1 });
        self.advanced += u64::from(step);
    }

    /// The IP identification is not a little larger than that of the packet before, unless its counter has wrapped.
    #[cold]
    fn on_other_step(&mut self, step: u16, seen: &CapturedSegment) {
        if !(1..=LARGEST_STEP).contains(&step) {
            self.on_jump(step, seen);
        } else if self.steps < KNOWN {
            self.on_step(step, seen);
        }
    }

    /// The IP identification is that of the packet before, or another that a counter would not reach. Many senders begin to
    /// choose them otherwise: behind a load balancer, or if a router writes them.
    fn on_jump(&mut self, step: u16, seen: &CapturedSegment) {
        let has_counted = self.counts();
        if self.steps < KNOWN {
            self.on_change(seen);
            self.changed += u32::from(step != 0);
        }
        self.jumped = seen.frame;
        if has_counted {
            self.counted = self.counted.saturating_sub(self.steps / OLDER);
            if !self.counts() {
                let Clock { jumped, first, newest, .. } = *self;
                *self = Clock { jumped, first, newest, ..Clock::default() };
            }
        }
    }

    fn on_change(&mut self, seen: &CapturedSegment) {
        self.steps += 1;
        let now = millis(seen.at);
        self.took = now.wrapping_sub(*self.began.get_or_insert(now));
    }

    /// True if the IP identifications of the sender count its packets.
    fn counts(&self) -> bool {
        self.evidence >= ENOUGH && u64::from(self.counted) * 10 >= u64::from(self.steps) * 9
    }

    /// True if the counter cannot have wrapped or jumped between two packets.
    fn is_near(&self, a: &CapturedSegment, b: &CapturedSegment) -> bool {
        // The counter of one connection does not count on while that is silent.
        let is_own = self.advanced <= u64::from(self.counted) * u64::from(SMALL_STEP);
        let apart = a.at.since(b.at).max(b.at.since(a.at)).as_secs_f64();
        let took = f64::from(self.took) / 1e3;
        let is_soon = apart * self.advanced as f64 <= f64::from(LARGEST_STEP) * took.max(1e-9);
        a.frame.min(b.frame) >= self.jumped && a.frame.abs_diff(b.frame) < NEAR && (is_own || is_soon)
    }

    /// True if the IP identifications of the sender are no counter.
    fn is_random(&self) -> bool {
        self.steps >= ENOUGH && !self.counts()
    }

    /// True if each packet of the sender has another IP identification, a counter or random. Until there is a second packet, this
    /// is assumed.
    fn has_own_ids(&self, first: Option<u16>) -> bool {
        if self.steps == 0 { first.is_some() } else { u64::from(self.changed) * 10 >= u64::from(self.steps) * 9 }
    }

    /// The time between two ticks of TSval, if it is known.
    fn tick(&self) -> Option<Duration> {
        const TICKS: u32 = 16;
        let ((from, began), (to, now)) = (self.first?, self.newest?);
        let ticks = to.wrapping_sub(from);
        (TICKS..1 << 31).contains(&ticks).then(|| now.since(began) / u64::from(ticks))
    }

    /// The time that passed between two timestamps.
    pub(super) fn between(&self, earlier: Option<u32>, later: Option<u32>) -> Option<Duration> {
        let ticks = later?.wrapping_sub(earlier?);
        (ticks < 1 << 31).then_some(self.tick()? * u64::from(ticks))
    }

    /// Which of two packets with data was sent first; none if their headers do not show it. Equal: they were sent within one
    /// tick, or one is a copy of the other.
    pub(super) fn order(&self, a: &CapturedSegment, b: &CapturedSegment) -> Option<Ordering> {
        // Identifications count single packets, but wrap after 2^16 of them. Some senders, reknit's among them,
        // repeat the first timestamp in a retransmission.
        if let (Some(first), Some(second)) = (a.ip_id(), b.ip_id()) {
            let apart = ahead(first, second).cast_signed();
            let is_known = self.counts() && self.is_near(a, b);
            let is_close = !self.is_random() && (1..=CLOSE).contains(&apart.unsigned_abs());
            if is_known || is_close {
                return Some(apart.cmp(&0));
            }
        }
        a.tsval().zip(b.tsval()).map(|(a, b)| a.wrapping_sub(b).cast_signed().cmp(&0))
    }

    /// True if `b` has the headers of `a`, so that it is a copy that the network made.
    pub(super) fn is_copy(&self, a: &CapturedSegment, b: &CapturedSegment) -> bool {
        let has_own_ids = a.ip_id().is_some() && self.has_own_ids(a.ip_id());
        a.ip_id() == b.ip_id() && a.tsval() == b.tsval() && (has_own_ids || a.tsval().is_some())
    }

    /// True if two transmissions of the same data that are `apart` must differ in their headers.
    pub(super) fn tells_apart(&self, apart: Duration) -> bool {
        self.has_own_ids(None) || self.tick().is_some_and(|tick| tick < apart)
    }
}

/// By how much the identification `id` is ahead of `other`. The counters of old Windows versions have 15 bits: if both numbers are
/// that small, and so far apart that one of 16 bits cannot have counted from one to the other, it has wrapped.
fn ahead(id: u16, other: u16) -> u16 {
    const HALF: u16 = 1 << 15;
    let ahead = id.wrapping_sub(other);
    let has_wrapped = id | other < HALF && ahead.cast_signed().unsigned_abs() > LARGEST_STEP;
    if has_wrapped { ahead.wrapping_add(HALF) } else { ahead }
}

/// In milliseconds, which may wrap.
fn millis(at: Instant) -> u32 {
    (at.as_nanos() / 1_000_000) as u32
}
