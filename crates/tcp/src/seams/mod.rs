//! The seams: small traits with facts in and decisions out, one for each question on which published algorithms differ.
//!
//! The engine asks in a fixed order on every ACK (see `sender/ack.rs`); a plug-in never writes the scoreboard or the
//! window. Detecting a loss, responding to it and undoing the response are separate questions, so any answer to one
//! combines with any answer to another. Hooks named `on_…` notify; nouns and questions answer. A default body stands
//! only where doing nothing is right for most algorithms.

mod detection;
mod receiver;
mod response;

pub use self::detection::{
    DupThresh, Entry, LossDetector, Postponement, ReorderingHistory, SpuriousDetector, Verdicts, Why,
};
pub use self::receiver::{AckAction, AckPolicy, Arrival, Disclosure, HeaderSupport, RxFacts, TimedAck};
pub use self::response::{
    AfterTimeout, CongestionControl, DisorderEnd, FastRecovery, LimitedTransmit, LossResponse, Pacing, Reduction,
    RtoEstimator, SpuriousResponse, TimeoutRecovery, TimeoutStep, Undo,
};
use crate::facts::{Context, Turn};

/// One algorithm for each seam: what makes a connection a variant.
#[derive(Debug)]
pub struct Plugins {
    /// The sender's.
    pub sender: SenderPlugins,
    /// Replaces those of them that need SACK, if the peer does not do it; none if none needs it.
    pub without_sack: Option<fn(&mut SenderPlugins)>,
    /// When the receiver acknowledges.
    pub ack_policy: Box<dyn AckPolicy>,
    /// What travels beyond the standard options.
    pub header_support: Vec<Box<dyn HeaderSupport>>,
}

/// One algorithm for each seam of the sender.
#[derive(Debug)]
pub struct SenderPlugins {
    /// Which segments are lost.
    pub loss_detector: Box<dyn LossDetector>,
    /// How many duplicates mean loss.
    pub dup_thresh: Box<dyn DupThresh>,
    /// How much longer to wait; all must agree.
    pub postponements: Vec<Box<dyn Postponement>>,
    /// Whether the last reduction was spurious; the first verdict counts.
    pub spurious_detectors: Vec<Box<dyn SpuriousDetector>>,
    /// The window after such news.
    pub spurious_response: Box<dyn SpuriousResponse>,
    /// The window after a loss.
    pub loss_response: Box<dyn LossResponse>,
    /// How fast recovery spends the window.
    pub fast_recovery: Box<dyn FastRecovery>,
    /// What to send after a timeout.
    pub timeout_recovery: Box<dyn TimeoutRecovery>,
    /// The retransmission timeout.
    pub rto_estimator: Box<dyn RtoEstimator>,
    /// New data during disorder.
    pub limited_transmit: Box<dyn LimitedTransmit>,
    /// Growth and reduction of the window.
    pub congestion_control: Box<dyn CongestionControl>,
}

impl SenderPlugins {
    /// Bytes that the plug-ins keep.
    pub(crate) fn state_size(&self) -> usize {
        macro_rules! size {
            ($($plugin:expr),*) => { 0 $(+ size_of_val(&*$plugin) + $plugin.heap_size())* };
        }
        let postponements: usize = self.postponements.iter().map(|part| size!(*part)).sum();
        let detectors: usize = self.spurious_detectors.iter().map(|part| size!(*part)).sum();
        postponements
            + detectors
            + size!(
                self.loss_detector,
                self.dup_thresh,
                self.spurious_response,
                self.loss_response,
                self.fast_recovery,
                self.timeout_recovery,
                self.rto_estimator,
                self.limited_transmit,
                self.congestion_control
            )
    }

    /// Tells every plug-in about a turn.
    pub(crate) fn on_turn(&mut self, cx: &Context<'_>, turn: Turn) {
        self.loss_detector.on_turn(cx, turn);
        self.dup_thresh.on_turn(cx, turn);
        for postponement in &mut self.postponements {
            postponement.on_turn(cx, turn);
        }
        for detector in &mut self.spurious_detectors {
            detector.on_turn(cx, turn);
        }
        self.spurious_response.on_turn(cx, turn);
        self.loss_response.on_turn(cx, turn);
        self.fast_recovery.on_turn(cx, turn);
        self.timeout_recovery.on_turn(cx, turn);
        self.rto_estimator.on_turn(cx, turn);
        self.limited_transmit.on_turn(cx, turn);
        self.congestion_control.on_turn(cx, turn);
    }
}
