//! Writes what the engine sends into a script, for its author to review.

use std::collections::VecDeque;

use reknit_units::Duration;

use crate::notation::{Fields, with};
use crate::parse::split_time;
use crate::run::{Subject, time_text};
use crate::{Engine, Event, ScriptError, parse};

/// `text` with the segments that the engine sends instead of those that the script expects. Optional fields are written
/// where the old line had them.
///
/// # Errors
/// If the script is wrong.
pub fn update(file: &str, text: &str) -> Result<String, ScriptError> {
    let script = parse(file, text)?;
    let refuse = |line: usize, message: String| ScriptError { file: file.to_owned(), line, message };
    let mut engine = Engine::new(&script).map_err(|error| refuse(1, error))?;
    let fields = script.lines.iter().filter_map(|line| match &line.event {
        Event::Sends(pattern) => Some((pattern.compared, pattern.absent)),
        _ => None,
    });
    let mut writer = Writer { fields: fields.collect(), ..Writer::default() };
    let mut lines = script.lines.iter().peekable();
    let mut comments = Vec::new();
    for (number, source) in (1..).zip(text.lines()) {
        let Some(line) = lines.next_if(|line| line.number == number) else {
            comments.push(source.to_owned());
            continue;
        };
        if matches!(line.event, Event::Sends(_)) {
            continue;
        }
        let failed = |error| refuse(number, error);
        writer.flush(&mut engine, line.at).map_err(failed)?;
        writer.lines.append(&mut comments);
        let event = source.trim();
        let (_, event) = split_time(event);
        writer.write(line.at, event.trim());
        match &line.event {
            Event::Gets(segment) => engine.deliver(segment).map_err(failed)?,
            Event::Call(call) => engine.call(*call).map_err(failed)?,
            _ => {}
        }
    }
    if let Some(last) = script.lines.last() {
        writer.flush(&mut engine, last.at).map_err(|error| refuse(last.number, error))?;
    }
    if writer.now.is_none() {
        return Err(refuse(
            1,
            "the script contains only segments that the connection should send, so nothing makes it send any; add a call such as \
             `connect`"
                .to_owned(),
        ));
    }
    writer.lines.append(&mut comments);
    Ok(writer.lines.join("\n") + "\n")
}

#[derive(Default)]
struct Writer {
    lines: Vec<String>,
    /// The optional fields of the expected segments, in order.
    fields: VecDeque<(Fields, Fields)>,
    now: Option<Duration>,
}

impl Writer {
    /// Writes what is sent until then.
    fn flush(&mut self, engine: &mut Engine, until: Duration) -> Result<(), String> {
        while let Some((at, segment)) = engine.next_sent(until)? {
            let (compared, absent) = self.fields.pop_front().unwrap_or_default();
            self.write(at, &format!("> {}{}", with(&segment, compared), without(absent)));
        }
        Ok(())
    }

    /// Writes an event with its time, unless it is that of the line before.
    fn write(&mut self, at: Duration, event: &str) {
        let time = if self.now == Some(at) { String::new() } else { time_text(at) };
        self.now = Some(at);
        // Arrows are aligned in one column, calls in the next.
        let indent = if event.starts_with(['<', '>']) { "" } else { "  " };
        self.lines.push(format!("{time:<8} {indent}{event}"));
    }
}

fn without(absent: Fields) -> String {
    let words: Vec<&str> = crate::notation::words(absent).collect();
    if words.is_empty() { String::new() } else { format!(" without {}", words.join(" ")) }
}
