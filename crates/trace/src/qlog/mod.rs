//! qlog, the logs of QUIC stacks (draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events): packets that the sender declared
//! lost although they were only late, what that cost, and which thresholds (RFC 9002 §6.1) would have been enough.
//!
//! A file is read as a stream of JSON values (`source.rs`, `document.rs`), in memory that grows with the packets in flight and
//! those declared lost, not with the file. `value.rs` and `data.rs` read fields whatever type a dialect gives them; `event.rs` says
//! what an event means. Each end of a connection (`end.rs`) has the packets that it sent (`outbound.rs`, `round_trip.rs`,
//! `windows.rs`) and those that it received (`inbound.rs`). The logs of both ends of a connection are joined in `connections.rs`, and
//! `report.rs` and `direction.rs` have the result.

mod connections;
mod data;
mod direction;
mod document;
mod end;
mod event;
mod inbound;
mod log;
mod outbound;
mod report;
mod round_trip;
mod source;
mod value;
mod windows;

use std::io::Read;

pub use direction::{QlogDirection, ReductionReport, ThresholdReport, WindowReport};
use log::Log;
pub use report::{QlogAnalysis, QlogFile};
pub(crate) use source::is_json;

use crate::Error;
use crate::input::plain;

/// Logs of one or of both ends.
#[derive(Debug, Default)]
pub struct Qlogs {
    logs: Vec<(String, Log)>,
}

impl Qlogs {
    /// True if it is a qlog, plain or compressed, rather than a capture: it begins like JSON. An error of the reader is none here.
    pub fn is_qlog(reader: impl Read) -> bool {
        const ENOUGH: u64 = 64;
        let mut start = Vec::new();
        // What cannot be decompressed begins like nothing.
        let _ = plain(reader).and_then(|reader| reader.take(ENOUGH).read_to_end(&mut start));
        is_json(&start)
    }

    /// Reads a qlog, plain or compressed. `file`: its name.
    ///
    /// # Errors
    /// If the reader fails, it is no qlog, or an event is wrong. The message does not name the file.
    pub fn read(&mut self, reader: impl Read, file: &str) -> Result<(), Error> {
        let log = log::read(plain(reader)?)?;
        self.logs.push((file.to_owned(), log));
        Ok(())
    }

    /// What the logs show.
    pub fn report(&self) -> QlogAnalysis {
        QlogAnalysis::of(&self.logs)
    }
}
