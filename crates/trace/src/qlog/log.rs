//! A qlog as a whole: its ends, and what is odd in it.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};

use serde::de::DeserializeSeed;
use serde_json::error::Category;

use super::document::{Header, Raw, Reading, Record, Take, WRONG};
use super::end::{End, Vantage};
use super::event::{Event, Timeline};
use super::source::Source;
use super::value::Scalar;
use crate::Error;

/// Connections in one file.
const MAX_ENDS: usize = 10_000;

/// A qlog that was read.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) ends: Vec<End>,
    /// The version or schema that it names.
    pub(super) version: Option<String>,
    pub(super) events: u64,
    pub(super) duration_s: f64,
    pub(super) backwards: u64,
    /// Why only the first part was read.
    pub(super) damage: Option<String>,
}

/// Reads a qlog that is not compressed.
///
/// # Errors
/// If the reader fails, it is no qlog, or an event is wrong.
pub(super) fn read(reader: impl Read) -> Result<Log, Error> {
    let mut building = Building::default();
    let mut reading = Reading::new(&mut building);
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, Source::new(reader)));
    let mut damage = None;
    while json.end().is_err() {
        if let Err(error) = Record(&mut reading).deserialize(&mut json) {
            let message = error.to_string();
            if let Some((wrong, _)) = message.split_once(WRONG).and_then(|(_, wrong)| wrong.rsplit_once(" at line ")) {
                return Err(Error::Format(format!("line {}, {wrong}", error.line())));
            }
            if reading.events == 0 || error.classify() == Category::Io && !is_truncated(&error) {
                return Err(unreadable(&error));
            }
            damage = Some(message);
            break;
        }
    }
    if let Some(header) = reading.sequence.take() {
        reading.to.trace(header);
    }
    let (events, other_format) = (reading.events, reading.other_format);
    let version = [&reading.version, &reading.schema].into_iter().find_map(|name| name.text().map(str::to_owned));
    if events == 0 {
        return Err(Error::Format(match other_format {
            Some(name) => format!("is {name}; supported is {SUPPORTED}"),
            None => format!("is JSON, but has no events of qlog; supported is {SUPPORTED}"),
        }));
    }
    Ok(building.finish(version, events, damage))
}

const SUPPORTED: &str = "qlog from draft-00 on, as one JSON document or as a sequence of records";

fn is_truncated(error: &serde_json::Error) -> bool {
    error.io_error_kind() == Some(io::ErrorKind::UnexpectedEof)
}

fn unreadable(error: &serde_json::Error) -> Error {
    let place = format!("line {}, column {}", error.line(), error.column());
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    Error::Format(match error.classify() {
        Category::Io => message.to_owned(),
        Category::Eof => format!("ends in {place}, before the first event; supported is {SUPPORTED}"),
        Category::Syntax | Category::Data => format!("{place}: {message}; supported is {SUPPORTED}"),
    })
}

#[derive(Debug, Default)]
struct Building {
    /// By the trace and the group of the event.
    ends: BTreeMap<(usize, Option<String>), End>,
    times: BTreeMap<usize, Timeline>,
}

impl Take for Building {
    fn event(&mut self, header: &Header, raw: Raw) -> Result<(), String> {
        let event = Event::of(&raw)?;
        if matches!(event, Event::Other) && raw.time.is_none() {
            return Ok(());
        }
        let at = self.times.entry(header.number).or_default().at(header, &raw)?;
        let group = id(&raw.group).or_else(|| group(header));
        let key = (header.number, group);
        if self.ends.len() >= MAX_ENDS && !self.ends.contains_key(&key) {
            return Err(format!("there are more than {MAX_ENDS} connections"));
        }
        let group = key.1.clone();
        self.ends.entry(key).or_insert_with(|| End::new(group)).on_event(event, at)
    }

    fn trace(&mut self, header: Header) {
        let vantage = if header.vantage.is("client") {
            Vantage::Client
        } else if header.vantage.is("server") {
            Vantage::Server
        } else {
            Vantage::Other
        };
        // The header may come after the events.
        let group = group(&header);
        for ((trace, _), end) in self.ends.range_mut((header.number, None)..) {
            if *trace == header.number {
                end.vantage = vantage;
                end.group = end.group.take().or_else(|| group.clone());
            }
        }
    }
}

/// What identifies the connection of a trace.
fn group(header: &Header) -> Option<String> {
    id(&header.group).or_else(|| id(&header.original_id))
}

/// An identifier as text.
fn id(value: &Scalar) -> Option<String> {
    match value {
        Scalar::Text(text) => Some(text.clone()),
        Scalar::Whole(number) => Some(number.to_string()),
        _ => None,
    }
}

impl Building {
    fn finish(self, version: Option<String>, events: u64, damage: Option<String>) -> Log {
        let duration_s = self.times.values().map(|times| times.duration().as_secs_f64()).fold(0.0, f64::max);
        let backwards = self.times.values().map(|times| times.backwards).sum();
        let mut ends: Vec<End> = self.ends.into_values().collect();
        for end in &mut ends {
            let last = end.last;
            end.outbound.windows.end(last);
        }
        Log { ends, version, events, duration_s, backwards, damage }
    }
}
