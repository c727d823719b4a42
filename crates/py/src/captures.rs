//! `reknit.analyze`: captures.

use std::path::Path;

use pyo3::IntoPyObject;
use reknit_trace::{Analysis, Analyzer, CapturePoint, Event, Events, Options, PathPart, Verdict};

/// The verdicts on packets, in columns.
#[derive(IntoPyObject, Default)]
pub(crate) struct EventColumns {
    stream: Vec<u32>,
    end: Vec<u32>,
    packet: Vec<u64>,
    /// Nanoseconds since 1970, of the packet and of the one that decided.
    at_ns: Vec<u64>,
    decided_ns: Vec<u64>,
    offset_bytes: Vec<u64>,
    length_bytes: Vec<u32>,
    side: Vec<&'static str>,
    verdict: Vec<&'static str>,
    reason: Vec<Option<&'static str>>,
    late_packets: Vec<Option<u32>>,
    late_ms: Vec<Option<f64>>,
}

impl EventColumns {
    fn add(&mut self, event: &Event) {
        self.stream.push(event.stream);
        self.end.push(event.end.into());
        self.packet.push(event.frame);
        self.at_ns.push(event.at.as_nanos());
        self.decided_ns.push(event.decided.as_nanos());
        self.offset_bytes.push(event.offset);
        self.length_bytes.push(event.len);
        self.side.push(match event.side {
            PathPart::Upstream => "before",
            PathPart::AtCapturePoint => "here",
            PathPart::Downstream => "after",
            PathPart::Connection => "connection",
        });
        let mut late = None;
        let (verdict, reason) = match event.verdict {
            Verdict::Lost => ("lost", None),
            Verdict::Reordered { packets, late: by } => {
                late = Some((packets, by.as_secs_f64() * 1e3));
                ("reordered", None)
            }
            Verdict::Duplicated => ("duplicated", None),
            Verdict::Spurious(why) => ("spurious", Some(why.name())),
            Verdict::Discarded => ("discarded", None),
            Verdict::Unknown(reason) => ("cannot_tell", Some(reason.name())),
            Verdict::Incident { what, .. } => ("incident", Some(what.name())),
        };
        self.verdict.push(verdict);
        self.reason.push(reason);
        self.late_packets.push(late.map(|(packets, _)| packets));
        self.late_ms.push(late.map(|(_, ms)| ms));
    }
}

/// The analysis, the verdicts, and how many verdicts were left out.
pub(crate) fn analyze(path: &Path, at: Option<CapturePoint>) -> Result<(Analysis, EventColumns, u64), String> {
    let refuse = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = reknit_compare::open_capture(path)?;
    let options = Options { at, ..Options::default() };
    let mut analyzer = Analyzer::new(options);
    let mut events = Events::default();
    analyzer.read(file, &mut |event| events.add(event)).map_err(|error| refuse(&error))?;
    let mut analysis = analyzer.finish(&mut |event| events.add(event));
    analysis.file = path.display().to_string();
    analysis.refuse_without_tcp()?;
    reknit_compare::advise(&mut analysis, path, &options)?;
    let (events, left_out) = events.counted(&analysis);
    let mut columns = EventColumns::default();
    for event in &events {
        columns.add(event);
    }
    Ok((analysis, columns, left_out))
}
