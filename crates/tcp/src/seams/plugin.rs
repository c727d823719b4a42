//! What all plug-ins have in common, and the set of plug-ins that makes a connection a variant.

use std::fmt::{self, Debug};

use reknit_units::Instant;

use crate::facts::{Context, Turn};
use crate::seams::{
    AckPolicy, CongestionControl, CongestionControlTraits, DupThresh, FastRecovery, FastRecoveryTraits, HeaderSupport,
    LimitedTransmit, LimitedTransmitTraits, LossDetector, LossDetectorTraits, LossResponse, Memory, Postponement,
    ReceiveBuffer, RtoEstimator, SendBuffer, SpuriousDetector, SpuriousResponse, TimeoutRecovery, UndoLimit,
};

/// A plug-in of any seam.
pub trait Plugin: Debug + Send {
    /// A change in the sender's recovery. Resets state that belongs to a single episode. Not called for plug-ins of a
    /// receiver.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}

    /// Bytes that it has allocated on the heap.
    fn heap_size(&self) -> usize {
        0
    }

    /// Calls `show` for each of its variables that users may want to see, with a name such as `fa_ratio`. A name with a
    /// unit ends in it (`window_ms`). Results have the number under the name of its seam: `dup_thresh.fa_ratio`.
    fn show(&self, _show: &mut dyn FnMut(&'static str, f64)) {}

    /// Keeps what the next connection to the same peer may start with.
    fn remember(&self, _memory: &mut Memory) {}

    /// Starts with what earlier connections to the same peer have kept. Called before the first segment.
    fn recall(&mut self, _now: Instant, _memory: &Memory) {}
}

/// The name of a number that a plug-in shows. As text: `dup_thresh.fa_ratio`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ShownName {
    /// The seam of the plug-in.
    pub seam: &'static str,
    /// The plug-in's name for the number.
    pub name: &'static str,
}

impl fmt::Display for ShownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seam, self.name)
    }
}

/// Plug-ins of different seams, and what is done with all of them.
pub(crate) trait PluginSet {
    /// Calls `visit` with each plug-in and the name of its seam.
    fn each(&self, visit: &mut dyn FnMut(&'static str, &dyn Plugin));

    /// Calls `visit` with each plug-in.
    fn each_mut(&mut self, visit: &mut dyn FnMut(&mut dyn Plugin));

    /// Bytes that the plug-ins occupy.
    fn state_size(&self) -> usize {
        let mut size = 0;
        self.each(&mut |_, plugin| size += size_of_val(plugin) + plugin.heap_size());
        size
    }

    /// Tells every plug-in about a change in the sender's recovery.
    fn on_turn(&mut self, cx: &Context<'_>, turn: Turn) {
        self.each_mut(&mut |plugin| plugin.on_turn(cx, turn));
    }

    /// Calls `show` for each number that a plug-in shows, except infinities and NaN.
    fn show(&self, show: &mut dyn FnMut(ShownName, f64)) {
        self.each(&mut |seam, plugin| {
            plugin.show(&mut |name, value| {
                if value.is_finite() {
                    show(ShownName { seam, name }, value);
                }
            });
        });
    }

    /// Lets every plug-in keep something for the next connection.
    fn remember(&self, memory: &mut Memory) {
        self.each(&mut |_, plugin| plugin.remember(memory));
    }

    /// Lets every plug-in start with what earlier connections have kept.
    fn recall(&mut self, now: Instant, memory: &Memory) {
        self.each_mut(&mut |plugin| plugin.recall(now, memory));
    }
}

/// One plug-in for each seam of the sender, or any number of them.
#[derive(Debug)]
pub struct SenderPlugins {
    /// Which segments are lost.
    pub loss_detector: Box<dyn LossDetector>,
    /// How many duplicates mean loss.
    pub dup_thresh: Box<dyn DupThresh>,
    /// How much longer to wait.
    pub postponements: Vec<Box<dyn Postponement>>,
    /// Whether the last reduction was spurious.
    pub spurious_detectors: Vec<Box<dyn SpuriousDetector>>,
    /// Which reductions may be undone.
    pub undo_limit: Box<dyn UndoLimit>,
    /// The window after a spurious reduction.
    pub spurious_response: Box<dyn SpuriousResponse>,
    /// The window after a loss.
    pub loss_response: Box<dyn LossResponse>,
    /// How much fast recovery may send.
    pub fast_recovery: Box<dyn FastRecovery>,
    /// What to send after a timeout.
    pub timeout_recovery: Box<dyn TimeoutRecovery>,
    /// The retransmission timeout.
    pub rto_estimator: Box<dyn RtoEstimator>,
    /// New data during disorder.
    pub limited_transmit: Box<dyn LimitedTransmit>,
    /// Growth and reduction of the window.
    pub congestion_control: Box<dyn CongestionControl>,
    /// How much of the written data is ready to be sent.
    pub send_buffers: Vec<Box<dyn SendBuffer>>,
}

/// What never changes about the plug-ins of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderTraits {
    pub(crate) loss_detector: LossDetectorTraits,
    pub(crate) fast_recovery: FastRecoveryTraits,
    pub(crate) limited_transmit: LimitedTransmitTraits,
    pub(crate) congestion_control: CongestionControlTraits,
}

impl SenderPlugins {
    pub(crate) fn traits(&self) -> SenderTraits {
        SenderTraits {
            loss_detector: self.loss_detector.traits(),
            fast_recovery: self.fast_recovery.traits(),
            limited_transmit: self.limited_transmit.traits(),
            congestion_control: self.congestion_control.traits(),
        }
    }
}

impl PluginSet for SenderPlugins {
    fn each(&self, visit: &mut dyn FnMut(&'static str, &dyn Plugin)) {
        visit("loss_detector", &*self.loss_detector);
        visit("dup_thresh", &*self.dup_thresh);
        self.postponements.iter().for_each(|plugin| visit("postponements", &**plugin));
        self.spurious_detectors.iter().for_each(|plugin| visit("spurious_detectors", &**plugin));
        visit("undo_limit", &*self.undo_limit);
        visit("spurious_response", &*self.spurious_response);
        visit("loss_response", &*self.loss_response);
        visit("fast_recovery", &*self.fast_recovery);
        visit("timeout_recovery", &*self.timeout_recovery);
        visit("rto_estimator", &*self.rto_estimator);
        visit("limited_transmit", &*self.limited_transmit);
        visit("congestion_control", &*self.congestion_control);
        self.send_buffers.iter().for_each(|plugin| visit("send_buffers", &**plugin));
    }

    fn each_mut(&mut self, visit: &mut dyn FnMut(&mut dyn Plugin)) {
        visit(&mut *self.loss_detector);
        visit(&mut *self.dup_thresh);
        self.postponements.iter_mut().for_each(|plugin| visit(&mut **plugin));
        self.spurious_detectors.iter_mut().for_each(|plugin| visit(&mut **plugin));
        visit(&mut *self.undo_limit);
        visit(&mut *self.spurious_response);
        visit(&mut *self.loss_response);
        visit(&mut *self.fast_recovery);
        visit(&mut *self.timeout_recovery);
        visit(&mut *self.rto_estimator);
        visit(&mut *self.limited_transmit);
        visit(&mut *self.congestion_control);
        self.send_buffers.iter_mut().for_each(|plugin| visit(&mut **plugin));
    }
}

/// One plug-in for each seam of the receiver, or any number of them.
#[derive(Debug)]
pub struct ReceiverPlugins {
    /// When the receiver acknowledges.
    pub ack_policy: Box<dyn AckPolicy>,
    /// How much of the receive buffer is used.
    pub receive_buffers: Vec<Box<dyn ReceiveBuffer>>,
    /// Header fields beyond the standard options.
    pub header_support: Vec<Box<dyn HeaderSupport>>,
}

impl PluginSet for ReceiverPlugins {
    fn each(&self, visit: &mut dyn FnMut(&'static str, &dyn Plugin)) {
        visit("ack_policy", &*self.ack_policy);
        self.receive_buffers.iter().for_each(|plugin| visit("receive_buffers", &**plugin));
        self.header_support.iter().for_each(|plugin| visit("header_support", &**plugin));
    }

    fn each_mut(&mut self, visit: &mut dyn FnMut(&mut dyn Plugin)) {
        visit(&mut *self.ack_policy);
        self.receive_buffers.iter_mut().for_each(|plugin| visit(&mut **plugin));
        self.header_support.iter_mut().for_each(|plugin| visit(&mut **plugin));
    }
}

/// One algorithm for each seam; they make a connection a variant.
#[derive(Debug)]
pub struct Plugins {
    /// The sender's plug-ins.
    pub sender: SenderPlugins,
    /// The receiver's plug-ins.
    pub receiver: ReceiverPlugins,
    /// Replaces the sender's plug-ins that need SACK, if the peer does not support it; none if no plug-in needs it.
    pub without_sack: Option<fn(&mut SenderPlugins)>,
}
