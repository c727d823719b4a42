//! Which of two packets was sent first, by their headers. [`super::data`] calls `on_new` for each packet with new data before it
//! is judged; the other functions only read: [`super::upstream`] calls them as a packet passes and as a range is decided. Owned by
//! [`super::data`].

use std::cmp::Ordering;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::sighting::CapturedSegment;

/// This many packets are needed before IP identifications are assumed to be a counter.
const ENOUGH: u32 = 8;
/// Identifications are assumed not to wrap within this many packets of the capture.
const NEAR: u64 = 1 << 14;
/// The largest step of a counter between two packets of a stream.
const LARGEST_STEP: u16 = 1_000;

/// What is known about a sender's timestamp clock and IP identification counter.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Clock {
    last_id: Option<u16>,
    /// Steps of the IP identification that look like a counter, and all steps.
    counted: u32,
    steps: u32,
    /// Steps that change the identification, counter or not.
    changed: u32,
    /// The first TSval and when it was seen, and the newest.
    first: Option<(u32, Instant)>,
    newest: Option<(u32, Instant)>,
}

impl Clock {
    /// A packet with new data.
    pub(super) fn on_new(&mut self, seen: &CapturedSegment) {
        if let (Some(last), Some(id)) = (self.last_id, seen.ip_id()) {
            self.steps = self.steps.saturating_add(1);
            let step = id.wrapping_sub(last);
            self.counted = self.counted.saturating_add(u32::from((1..=LARGEST_STEP).contains(&step)));
            self.changed = self.changed.saturating_add(u32::from(step != 0));
        }
        self.last_id = seen.ip_id();
        if let Some(value) = seen.tsval() {
            self.first.get_or_insert((value, seen.at));
            self.newest = Some((value, seen.at));
        }
    }

    /// True if the IP identifications of the sender count its packets.
    fn counts(&self) -> bool {
        self.steps >= ENOUGH && u64::from(self.counted) * 10 >= u64::from(self.steps) * 9
    }

    /// True if each packet of the sender has another IP identification, a counter or random. Until there is a second packet, zero
    /// is assumed to be the identification of all packets.
    fn has_own_ids(&self, first: Option<u16>) -> bool {
        if self.steps == 0 {
            first.is_some_and(|id| id != 0)
        } else {
            u64::from(self.changed) * 10 >= u64::from(self.steps) * 9
        }
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
        let is_near = a.frame.abs_diff(b.frame) < NEAR;
        if let (true, Some(a), Some(b)) = (is_near && self.counts(), a.ip_id(), b.ip_id()) {
            return Some(a.wrapping_sub(b).cast_signed().cmp(&0));
        }
        a.tsval().zip(b.tsval()).map(|(a, b)| a.wrapping_sub(b).cast_signed().cmp(&0))
    }

    /// True if `b` has the headers of `a`, so that it is a copy that the network made.
    pub(super) fn is_copy(&self, a: &CapturedSegment, b: &CapturedSegment) -> bool {
        if a.ip_id().is_some() && self.has_own_ids(a.ip_id()) {
            return a.ip_id() == b.ip_id() && a.tsval() == b.tsval();
        }
        a.tsval().is_some() && a.tsval() == b.tsval()
    }

    /// True if two transmissions of the same data that are `apart` must differ in their headers.
    pub(super) fn tells_apart(&self, apart: Duration) -> bool {
        self.has_own_ids(None) || self.tick().is_some_and(|tick| tick < apart)
    }
}
