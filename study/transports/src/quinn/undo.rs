//! A published congestion controller, each of whose reductions can be undone. For controllers that react to losses by a smaller
//! window, such as CUBIC and NewReno: one that counts rounds or lost bytes, such as BBR, must not be put back in time.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};

/// The number of reductions that can be undone.
const MAX_OPEN: usize = 4;
/// Up to this window in bytes, 32 packets, slow start does not pause.
const SMALL: u64 = 32 * 1200;

/// A reduction that may turn out to be spurious, or one that followed it.
struct Reduction {
    /// None if it stands in any case.
    event: Option<u64>,
    at: Instant,
    /// The controller before it.
    before: Box<dyn Controller>,
}

/// The controller, and its last reductions, oldest first.
pub struct Undoing {
    inner: Box<dyn Controller>,
    open: Vec<Reduction>,
    /// It is not known whether some retransmissions were needed.
    is_undecided: bool,
    undos: u64,
}

impl Undoing {
    /// With this controller.
    pub fn new(inner: Box<dyn Controller>) -> Undoing {
        Undoing { inner, open: Vec::new(), is_undecided: false, undos: 0 }
    }

    /// The same again.
    pub fn copy(&self) -> Undoing {
        let copy = |one: &Reduction| Reduction { event: one.event, at: one.at, before: one.before.clone_box() };
        Undoing {
            inner: self.inner.clone_box(),
            open: self.open.iter().map(copy).collect(),
            is_undecided: self.is_undecided,
            undos: self.undos,
        }
    }

    fn remember(&mut self, event: Option<u64>, at: Instant, before: Box<dyn Controller>) {
        if self.open.len() == MAX_OPEN {
            self.open.remove(0);
        }
        self.open.push(Reduction { event, at, before });
    }

    /// Reduces the window for `event`.
    pub fn reduce(&mut self, now: Instant, event: u64) {
        let before = self.inner.clone_box();
        self.inner.on_congestion_event(now, now, false, 0);
        self.remember(Some(event), now, before);
    }

    /// Makes the controller what it would be without the reduction for `event`: that before it, with the reductions that
    /// followed. The window never becomes smaller.
    pub fn undo(&mut self, event: u64) {
        let Some(i) = self.open.iter().position(|reduction| reduction.event == Some(event)) else { return };
        let mut inner = self.open.remove(i).before;
        for later in &mut self.open[i..] {
            later.before = inner.clone_box();
            inner.on_congestion_event(later.at, later.at, false, 0);
        }
        if inner.window() >= self.inner.window() {
            self.inner = inner;
        }
        self.undos += 1;
    }

    /// While slow start should pause, ACKs count as those of a sender without data.
    fn pauses(&self) -> bool {
        let window = self.inner.window();
        self.is_undecided && window > SMALL && self.inner.metrics().ssthresh.is_some_and(|ssthresh| window < ssthresh)
    }
}

impl Controller for Undoing {
    fn on_sent(&mut self, now: Instant, bytes: u64, last: u64) {
        self.inner.on_sent(now, bytes, last);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.inner.on_ack(now, sent, bytes, app_limited || self.pauses(), rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    /// After persistent congestion, no earlier reduction can be undone. Others are made again if one before them is undone.
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost: u64) {
        let before = self.inner.clone_box();
        self.inner.on_congestion_event(now, sent, is_persistent, lost);
        if is_persistent {
            self.open.clear();
        } else if self.inner.window() < before.window() && !self.open.is_empty() {
            self.remember(None, now, before);
        }
    }

    #[cfg(feature = "seam")]
    fn on_reduction(&mut self, now: Instant, event: u64) {
        self.reduce(now, event);
    }

    #[cfg(feature = "seam")]
    fn on_spurious(&mut self, _now: Instant, event: u64) {
        self.undo(event);
    }

    #[cfg(feature = "seam")]
    fn on_undecided(&mut self, is_undecided: bool) {
        self.is_undecided = is_undecided;
    }

    #[cfg(feature = "seam")]
    fn undos(&self) -> u64 {
        self.undos
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.inner.on_mtu_update(mtu);
        self.open.iter_mut().for_each(|reduction| reduction.before.on_mtu_update(mtu));
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.copy())
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Makes them, from quinn's CUBIC.
#[cfg_attr(not(feature = "seam"), expect(dead_code, reason = "the published crate undoes nothing"))]
#[derive(Default)]
pub struct UndoingConfig {
    inner: Arc<CubicConfig>,
}

impl ControllerFactory for UndoingConfig {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Undoing::new(Arc::clone(&self.inner).build(now, mtu)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn controller() -> (Undoing, impl Fn(u64) -> Instant) {
        let start = crate::clock::to_std(reknit_units::Instant::ZERO);
        let at = move |ms| start + Duration::from_millis(ms);
        let mut config = CubicConfig::default();
        config.initial_window(1_000_000);
        (Undoing::new(Arc::new(config).build(start, 1200)), at)
    }

    #[test]
    fn each_reduction_is_undone_by_itself() {
        let (mut controller, at) = controller();
        controller.reduce(at(10), 1);
        controller.reduce(at(20), 2);
        // As a binary fraction, 0.7 times 700,000 is a little less than 490,000.
        assert_eq!(controller.window(), 489_999);
        controller.undo(1);
        assert_eq!(controller.window(), 700_000);
        controller.undo(2);
        assert_eq!(controller.window(), 1_000_000);
    }

    #[test]
    fn a_mark_stands_when_the_reduction_before_it_is_undone() {
        let (mut controller, at) = controller();
        controller.reduce(at(10), 1);
        controller.on_congestion_event(at(20), at(20), false, 0);
        controller.undo(1);
        assert_eq!(controller.window(), 700_000);
    }

    #[test]
    fn nothing_is_undone_after_persistent_congestion() {
        let (mut controller, at) = controller();
        controller.reduce(at(10), 1);
        controller.on_congestion_event(at(20), at(20), true, 0);
        let window = controller.window();
        controller.undo(1);
        assert_eq!(controller.window(), window);
    }

    #[test]
    fn a_larger_packet_size_reaches_the_copies() {
        let (mut controller, at) = controller();
        controller.reduce(at(10), 1);
        controller.on_mtu_update(60_000);
        controller.undo(1);
        for event in 2..40 {
            controller.reduce(at(10 * event), event);
        }
        assert_eq!(controller.window(), 120_000, "two packets");
    }
}
