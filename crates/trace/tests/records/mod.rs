//! Captures that are changed record by record.

pub(crate) mod changes;

use reknit_trace::{Analysis, Analyzer, CapturePoint, Event, Events, Options};

pub(crate) const HEADER: usize = 24;
pub(crate) const RECORD: usize = 16;

/// The records of a capture with their numbers in the whole one.
#[derive(Clone)]
pub(crate) struct Records {
    pub(crate) header: Vec<u8>,
    pub(crate) records: Vec<(u64, Vec<u8>)>,
}

impl Records {
    pub(crate) fn of(file: &[u8]) -> Records {
        let (header, mut rest) = file.split_at(HEADER);
        let mut records = Vec::new();
        while !rest.is_empty() {
            let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
            let (record, after) = rest.split_at(RECORD + len);
            records.push((records.len() as u64 + 1, record.to_vec()));
            rest = after;
        }
        Records { header: header.to_vec(), records }
    }

    pub(crate) fn kept(&self, mut keeps: impl FnMut(u64) -> bool) -> Records {
        Records {
            header: self.header.clone(),
            records: self.records.iter().filter(|(n, _)| keeps(*n)).cloned().collect(),
        }
    }

    pub(crate) fn file(&self) -> Vec<u8> {
        let records = self.records.iter().flat_map(|(_, record)| record);
        self.header.iter().chain(records).copied().collect()
    }

    /// The analysis, and the events that count, with the numbers of the whole capture.
    pub(crate) fn analyze(&self, at: Option<CapturePoint>) -> (Analysis, Vec<Event>) {
        let mut analyzer = Analyzer::new(Options { at, ..Options::default() });
        let mut events = Events::default();
        analyzer.read(&self.file()[..], &mut |event| events.add(event)).unwrap();
        let analysis = analyzer.finish(&mut |event| events.add(event));
        let (mut events, _) = events.counted(&analysis);
        for event in &mut events {
            event.frame = self.records[event.frame as usize - 1].0;
        }
        (analysis, events)
    }
}
