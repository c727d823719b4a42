//! The seams: small traits with facts in and decisions out, one for each question on which published algorithms differ.
//!
//! The engine asks in a fixed order on every ACK (see `sender/ack.rs`); a plug-in never writes the scoreboard or the
//! window. Detecting a loss, responding to it and undoing the response are separate questions, so any answer to one
//! combines with any answer to another. Hooks named `on_…` notify; nouns and questions answer. A default body stands
//! only where doing nothing is right for most algorithms. [`seams!`](crate::seams!) is the table of them.

mod detection;
mod plugin;
mod receiver;
mod response;
mod table;

pub use self::detection::{
    DupThresh, Entry, LossDetector, Postponement, ReorderingHistory, SpuriousDetector, Verdicts, Why,
};
pub(crate) use self::plugin::Slot;
pub use self::plugin::{Plugin, Plugins, SenderPlugins};
pub use self::receiver::{AckAction, AckPolicy, Arrival, Disclosure, HeaderSupport, RxFacts, TimedAck};
pub use self::response::{
    AfterTimeout, CongestionControl, DisorderEnd, FastRecovery, LimitedTransmit, LossMarks, LossResponse, Pacing,
    Reduction, RtoEstimator, SpuriousResponse, TimeoutRecovery, TimeoutStep, Undo,
};
