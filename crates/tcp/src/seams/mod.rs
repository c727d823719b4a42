//! The seams: small traits that take facts and return decisions, one for each decision that published algorithms make
//! differently.
//!
//! The engine calls them in a fixed order on every ACK (see `sender/ack.rs`). A plug-in never writes the scoreboard or the
//! window. Detecting a loss, responding to it and undoing the response are separate decisions, so algorithms for each can be
//! combined freely. Methods named `on_…` notify; the others return a decision. A method has a default body only if doing
//! nothing is right for most algorithms. [`SenderPlugins`] and [`ReceiverPlugins`] list all seams.

mod detection;
mod memory;
mod plugin;
mod receiver;
mod response;
mod send_buffer;

pub use self::detection::{
    DupThresh, Entry, LateAcks, LossDetector, LossDetectorTraits, Postponement, SpuriousDetector, Verdicts, Why,
};
pub use self::memory::Memory;
pub use self::plugin::{Plugin, Plugins, ReceiverPlugins, SenderPlugins, ShownName};
pub(crate) use self::plugin::{PluginSet, SenderTraits};
pub use self::receiver::{
    AckAction, AckPolicy, Arrival, Disclosure, HeaderSupport, Reading, ReceiveBuffer, RxFacts, Space, TimedAck,
};
pub use self::response::{
    AfterTimeout, Batch, CongestionControl, CongestionControlTraits, DisorderEnd, FastRecovery, FastRecoveryTraits,
    LimitedTransmit, LimitedTransmitTraits, LossMarks, LossResponse, Pacing, Reduction, RtoEstimator, SpuriousResponse,
    TimeoutRecovery, TimeoutStep, Undo, UndoLimit,
};
pub use self::send_buffer::{Fill, SendBuffer, SendQueue};
