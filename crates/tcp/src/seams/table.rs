//! The table of seams. Each is listed once; [`Seam`] and the structs with the plug-ins of a connection are made from the list.

use std::fmt;
use std::slice;

use crate::seams::{
    self, CongestionControlTraits, FastRecoveryTraits, LimitedTransmitTraits, LossDetectorTraits, Plugin, PluginSet,
    RtoEstimatorTraits,
};

/// The type of the field for a seam with `one` plug-in, or with any number of them.
macro_rules! plugins {
    (one $seam:ident) => { Box<dyn seams::$seam> };
    (many $seam:ident) => { Vec<Box<dyn seams::$seam>> };
}

/// Defines [`Seam`] and the plug-ins of each end from the table below.
macro_rules! seams {
    ($($(#[$doc:meta])* $set:ident { $($key:ident: $count:ident $seam:ident, $question:literal;)+ })+) => {
        /// A decision that algorithms make, named as the trait of its plug-ins. In a variant file each seam is a table with its
        /// [key](Seam::key).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Seam {
            $($(#[doc = concat!("Decides ", $question, ".")] $seam,)+)+
        }

        impl Seam {
            /// All of them, the sender's first.
            pub const ALL: [Seam; [$($(Seam::$seam),+),+].len()] = [$($(Seam::$seam),+),+];

            /// Its name in variant files.
            pub const fn key(self) -> &'static str {
                match self {
                    $($(Seam::$seam => stringify!($key),)+)+
                }
            }

            /// What it decides.
            pub const fn question(self) -> &'static str {
                match self {
                    $($(Seam::$seam => $question,)+)+
                }
            }

            /// True if any number of algorithms may fill it, including none.
            pub const fn takes_many(self) -> bool {
                match self {
                    $($(Seam::$seam => seams!($count),)+)+
                }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub struct $set {
                $(#[doc = concat!("Decides ", $question, ".")] pub $key: plugins!($count $seam),)+
            }

            $(dyn_clone::clone_trait_object!(seams::$seam);)+

            /// Equal if `Debug` shows the same.
            impl PartialEq for $set {
                fn eq(&self, other: &$set) -> bool {
                    format!("{self:?}") == format!("{other:?}")
                }
            }

            impl PluginSet for $set {
                fn each(&self, visit: &mut dyn FnMut(&'static str, &dyn Plugin)) {
                    $(self.$key.plugins().iter().for_each(|plugin| visit(stringify!($key), &**plugin));)+
                }

                fn each_mut(&mut self, visit: &mut dyn FnMut(&mut dyn Plugin)) {
                    $(self.$key.plugins_mut().iter_mut().for_each(|plugin| visit(&mut **plugin));)+
                }
            }
        )+
    };
    (one) => { false };
    (many) => { true };
}

seams! {
    /// The plug-ins of a sender, one for each seam or any number of them.
    SenderPlugins {
        loss_detector: one LossDetector, "which segments are lost";
        dup_thresh: one DupThresh, "how many duplicates mean loss";
        postponements: many Postponement, "how much longer to wait";
        spurious_detectors: many SpuriousDetector, "whether the last reduction was spurious";
        undo_limit: one UndoLimit, "which reductions may be undone";
        spurious_response: one SpuriousResponse, "the window after a spurious reduction";
        loss_response: one LossResponse, "the window after a loss";
        fast_recovery: one FastRecovery, "how much fast recovery may send";
        timeout_recovery: one TimeoutRecovery, "what to send after a timeout";
        rto_estimator: one RtoEstimator, "the retransmission timeout";
        limited_transmit: one LimitedTransmit, "new data during disorder";
        congestion_control: one CongestionControl, "growth and reduction of the window";
        send_buffers: many SendBuffer, "how much of the written data is ready to be sent";
    }

    /// The plug-ins of a receiver, one for each seam or any number of them.
    ReceiverPlugins {
        ack_policy: one AckPolicy, "when the receiver acknowledges";
        receive_buffers: many ReceiveBuffer, "how much of the receive buffer is used";
        header_support: many HeaderSupport, "header fields beyond the standard options";
    }
}

impl fmt::Display for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

/// The plug-ins in a field of a [`PluginSet`]: one, or any number of them.
trait Filled {
    /// The trait of the seam.
    type Plugin: ?Sized;

    fn plugins(&self) -> &[Box<Self::Plugin>];

    fn plugins_mut(&mut self) -> &mut [Box<Self::Plugin>];
}

impl<P: ?Sized> Filled for Box<P> {
    type Plugin = P;

    fn plugins(&self) -> &[Box<P>] {
        slice::from_ref(self)
    }

    fn plugins_mut(&mut self) -> &mut [Box<P>] {
        slice::from_mut(self)
    }
}

impl<P: ?Sized> Filled for Vec<Box<P>> {
    type Plugin = P;

    fn plugins(&self) -> &[Box<P>] {
        self
    }

    fn plugins_mut(&mut self) -> &mut [Box<P>] {
        self
    }
}

/// What never changes about the plug-ins of a sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SenderTraits {
    pub(crate) loss_detector: LossDetectorTraits,
    pub(crate) fast_recovery: FastRecoveryTraits,
    pub(crate) limited_transmit: LimitedTransmitTraits,
    pub(crate) congestion_control: CongestionControlTraits,
    pub(crate) rto_estimator: RtoEstimatorTraits,
    /// True if a detector of spurious reductions judges earlier ones.
    pub(crate) judges_earlier: bool,
}

impl SenderPlugins {
    pub(crate) fn traits(&self) -> SenderTraits {
        SenderTraits {
            loss_detector: self.loss_detector.traits(),
            fast_recovery: self.fast_recovery.traits(),
            limited_transmit: self.limited_transmit.traits(),
            congestion_control: self.congestion_control.traits(),
            rto_estimator: self.rto_estimator.traits(),
            judges_earlier: self.spurious_detectors.iter().any(|detector| detector.traits().judges_earlier),
        }
    }
}

/// One algorithm for each seam; they make a connection a variant.
#[derive(Clone, Debug)]
pub struct Plugins {
    /// The sender's plug-ins.
    pub sender: SenderPlugins,
    /// The receiver's plug-ins.
    pub receiver: ReceiverPlugins,
    /// Replaces the sender's plug-ins that need SACK, if the peer does not support it; none if no plug-in needs it.
    pub without_sack: Option<fn(&mut SenderPlugins)>,
}
