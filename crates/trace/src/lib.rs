//! Finds the lost, late, duplicated and spuriously retransmitted packets of TCP connections in captures.
//!
//! [`Frames`] reads pcap and pcapng, plain or compressed. A [`packet::Reader`] finds the TCP packets in a frame. An [`Analyzer`]
//! takes the packets in order and gives a verdict on each packet that was not simply delivered, and on incidents of the
//! connection: an [`Event`]. At the end, an [`Analysis`] has the counts, the measures of each direction, and advice.
//!
//! A capture divides the path into two sides. What happened *before* the capture point shows in the order of the
//! packets (`stream/upstream.rs`); what happened *after* it shows in the acknowledgments (`stream/downstream.rs`). At a sender
//! only the second counts, at a receiver only the first, and in between both ([`CapturePoint::sees`]). So both are computed in one
//! pass and in bounded memory, and the capture point need not be known before the end.

mod advice;
mod analysis;
mod analyzer;
mod both_ends;
mod cost;
mod densities;
mod error;
mod event;
mod filter;
mod incidents;
mod input;
mod mark;
mod measured;
pub mod packet;
pub mod qlog;
mod spread;
mod stream;
mod streams;
mod tally;
mod transit;
mod verdicts;
mod warnings;
mod watcher;
mod without_tcp;

pub use advice::{Advice, Change, Gain, Remedy, Replayed};
pub use analysis::{
    Analysis, DirectionReport, LossRuns, N, OptionsReport, ReorderingReport, RoundTripReport, Verdicts,
};
pub use analyzer::{Analyzer, Options};
pub use both_ends::{BothEnds, BothEndsOptions, CaptureReport, ClockReport, DelayReport, FlowReport, Matched};
pub use cost::Cost;
pub use densities::DensityReport;
pub use error::{Damage, Error};
pub(crate) use event::SIDES;
pub use event::{Event, Incident, PathPart, RetransmitReason, UnknownReason, Verdict, how_often};
pub use filter::{Filter, Network, Time};
pub use incidents::IncidentReport;
pub use input::{Frame, Frames, ReadAhead};
pub use mark::{Mark, Passed};
pub use measured::MeasuredPath;
pub use stream::{CapturePoint, Confidence};
pub use streams::MAX_STREAMS;
pub use transit::{Departure, PacketFate, Transit, Transits};
pub use verdicts::Events;
pub use watcher::{MAX_FLOWS, Totals, Watcher};
