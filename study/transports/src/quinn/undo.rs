//! A published congestion controller, each of whose reductions can be undone.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};

/// The number of reductions that can be undone.
const MAX_OPEN: usize = 4;

/// A reduction that may turn out to be spurious.
struct Reduction {
    event: u64,
    at: Instant,
    /// The controller before it.
    before: Box<dyn Controller>,
}

/// The controller, and its last reductions, oldest first.
pub struct Undoing {
    inner: Box<dyn Controller>,
    open: Vec<Reduction>,
    undos: u64,
}

impl Undoing {
    /// With this controller.
    pub fn new(inner: Box<dyn Controller>) -> Undoing {
        Undoing { inner, open: Vec::new(), undos: 0 }
    }

    /// The same again.
    pub fn copy(&self) -> Undoing {
        let copy = |one: &Reduction| Reduction { event: one.event, at: one.at, before: one.before.clone_box() };
        Undoing { inner: self.inner.clone_box(), open: self.open.iter().map(copy).collect(), undos: self.undos }
    }

    /// Reduces the window for `event`.
    pub fn reduce(&mut self, now: Instant, event: u64) {
        if self.open.len() == MAX_OPEN {
            self.open.remove(0);
        }
        self.open.push(Reduction { event, at: now, before: self.inner.clone_box() });
        self.inner.on_congestion_event(now, now, false, 0);
    }

    /// Makes the controller what it would be without the reduction for `event`: that before it, with the reductions that
    /// followed.
    pub fn undo(&mut self, event: u64) {
        let Some(i) = self.open.iter().position(|reduction| reduction.event == event) else { return };
        let mut inner = self.open.remove(i).before;
        for later in &mut self.open[i..] {
            later.before = inner.clone_box();
            inner.on_congestion_event(later.at, later.at, false, 0);
        }
        self.inner = inner;
        self.undos += 1;
    }
}

impl Controller for Undoing {
    fn on_sent(&mut self, now: Instant, bytes: u64, last: u64) {
        self.inner.on_sent(now, bytes, last);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost: u64) {
        self.inner.on_congestion_event(now, sent, is_persistent, lost);
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
    fn undos(&self) -> u64 {
        self.undos
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.inner.on_mtu_update(mtu);
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
