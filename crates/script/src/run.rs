//! Runs a script against a TCP.

use std::fmt;

use reknit_tcp::segment::Segment;
use reknit_units::Duration;

use crate::notation::{Field, Fields, Pattern, brief, full, with};
use crate::{Call, Event, Script, Variable};

/// The value of a variable.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A number, of bytes.
    Number(u64),
    /// A duration.
    Time(Duration),
    /// A word.
    Word(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Time(time) => time.fmt(f),
            Value::Word(word) => word.fmt(f),
        }
    }
}

/// A TCP under test. Times count from the start of the script; numbers of segments are relative.
pub trait Subject {
    /// The next segment that it sends, if it does so until `until`, and when.
    ///
    /// # Errors
    /// What went wrong, other than TCP.
    fn next_sent(&mut self, until: Duration) -> Result<Option<(Duration, Segment)>, String>;

    /// A segment of the peer arrives.
    ///
    /// # Errors
    /// What went wrong, other than TCP.
    fn deliver(&mut self, segment: &Segment) -> Result<(), String>;

    /// The application calls.
    ///
    /// # Errors
    /// What went wrong, other than TCP.
    fn call(&mut self, call: Call) -> Result<(), String>;

    /// A variable, or nothing if it cannot tell. `expected` helps it to choose between values that it cannot tell apart.
    ///
    /// # Errors
    /// What went wrong, other than TCP.
    fn value(&mut self, variable: Variable, expected: Value) -> Result<Option<Value>, String>;

    /// How far the time of a segment may differ from that of the script, `waited` after the event before it.
    fn tolerance(&self, waited: Duration) -> Duration;

    /// True if flags that only inform, PSH, must be the same.
    fn compares_push(&self) -> bool {
        true
    }
}

/// Where a TCP differs from the script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The line in the file, from 1.
    pub line: usize,
    /// What differs.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// A run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunReport {
    /// The first difference, if there is one.
    pub failure: Option<Failure>,
    /// What happened, one line for each event.
    pub transcript: Vec<String>,
}

/// Runs `script` against `subject`.
///
/// If the subject sends something late, within its tolerance, everything after it happens later by the same time.
pub fn run(script: &Script, subject: &mut dyn Subject) -> RunReport {
    let mut transcript = Vec::new();
    let (mut before, mut late) = (Duration::ZERO, Duration::ZERO);
    let failure = script.lines.iter().find_map(|line| {
        let waited = line.at - std::mem::replace(&mut before, line.at);
        let happened = step(&line.event, line.at + late, waited, subject, &mut transcript);
        late = late.max(happened.as_ref().map_or(Duration::ZERO, |at| *at - line.at));
        Some(Failure { line: line.number, message: happened.err()? })
    });
    let failure = failure.or_else(|| {
        let last = script.lines.last()?;
        let until = last.at + late + subject.tolerance(Duration::ZERO);
        let message = quiet_until(until, subject, &mut transcript).err()?;
        Some(Failure { line: last.number, message: format!("after the last line {message}") })
    });
    RunReport { failure, transcript }
}

/// Returns when the event happened.
fn step(
    event: &Event,
    at: Duration,
    waited: Duration,
    subject: &mut dyn Subject,
    transcript: &mut Vec<String>,
) -> Result<Duration, String> {
    if let Event::Sends(pattern) = event {
        return expect(at, pattern, subject.tolerance(waited), subject, transcript);
    }
    quiet_until(at, subject, transcript)?;
    match event {
        Event::Gets(segment) => {
            transcript.push(format!("{:>10} < {}", time_text(at), full(segment)));
            subject.deliver(segment)?;
        }
        Event::Call(call) => {
            transcript.push(format!("{:>10}   {call}", time_text(at)));
            subject.call(*call)?;
        }
        Event::Check(variable, expected) => match subject.value(*variable, *expected)? {
            Some(found) if found != *expected => {
                return Err(format!("{} is {found} instead of {expected}", variable.name()));
            }
            _ => {}
        },
        Event::Sends(_) | Event::Nothing => {}
    }
    Ok(at)
}

/// A time as scripts write it, exact.
pub(crate) fn time_text(at: Duration) -> String {
    let nanos = at.as_nanos();
    match nanos {
        _ if nanos.is_multiple_of(1_000_000) => format!("{}ms", nanos / 1_000_000),
        _ if nanos.is_multiple_of(1_000) => format!("{}us", nanos / 1_000),
        _ => format!("{nanos}ns"),
    }
}

fn note(at: Duration, segment: &Segment, transcript: &mut Vec<String>) {
    transcript.push(format!("{:>10} > {}", time_text(at), full(segment)));
}

fn quiet_until(until: Duration, subject: &mut dyn Subject, transcript: &mut Vec<String>) -> Result<(), String> {
    match subject.next_sent(until)? {
        Some((at, segment)) => {
            note(at, &segment, transcript);
            Err(format!("`{}` was sent at {}, which the script does not expect", brief(&segment), time_text(at)))
        }
        None => Ok(()),
    }
}

fn expect(
    at: Duration,
    pattern: &Pattern,
    tolerance: Duration,
    subject: &mut dyn Subject,
    transcript: &mut Vec<String>,
) -> Result<Duration, String> {
    let Some((sent, segment)) = subject.next_sent(at + tolerance)? else {
        return Err(format!("nothing was sent until {}", time_text(at + tolerance)));
    };
    note(sent, &segment, transcript);
    if !pattern.matches(&segment, tolerance, subject.compares_push()) {
        let mut shown = pattern.compared;
        for field in [Field::Mss, Field::WindowScale, Field::SackPermitted, Field::Timestamps] {
            if pattern.absent.has(field) {
                shown.insert(field);
            }
        }
        return Err(format!("`{}` was sent instead", with(&segment, shown)));
    }
    if sent.abs_diff(at) > tolerance {
        return Err(format!("it was sent at {} instead of {}", time_text(sent), time_text(at)));
    }
    Ok(sent)
}

impl Pattern {
    /// True if `segment` is as written. Timestamps may differ by `tolerance`.
    fn matches(&self, segment: &Segment, tolerance: Duration, push: bool) -> bool {
        let bits = |segment: &Segment| {
            let bits = segment.flags.bits();
            if push { bits } else { bits & !reknit_tcp::segment::Flags::PSH.bits() }
        };
        let own = &self.segment;
        let same = bits(own) == bits(segment)
            && (own.seq, own.len, own.ack) == (segment.seq, segment.len, segment.ack)
            && own.options.sack == segment.options.sack;
        same && !has_any(segment, self.absent) && self.same_fields(segment, tolerance)
    }

    fn same_fields(&self, segment: &Segment, tolerance: Duration) -> bool {
        let (own, other) = (&self.segment.options, &segment.options);
        let near = |a: u32, b: u32| {
            let distance = a.wrapping_sub(b).min(b.wrapping_sub(a));
            u64::from(distance) <= tolerance.as_millis()
        };
        let same = |field: Field| match field {
            Field::Window => self.segment.window == segment.window,
            Field::Mss => own.mss == other.mss,
            Field::WindowScale => own.window_scale == other.window_scale,
            Field::SackPermitted => own.sack_permitted == other.sack_permitted,
            Field::Timestamps => match (own.timestamps, other.timestamps) {
                (Some(a), Some(b)) => near(a.val, b.val) && a.ecr == b.ecr,
                _ => false,
            },
            Field::Ecn => self.segment.ecn == segment.ecn,
        };
        [Field::Window, Field::Mss, Field::WindowScale, Field::SackPermitted, Field::Timestamps, Field::Ecn]
            .into_iter()
            .all(|field| !self.compared.has(field) || same(field))
    }
}

fn has_any(segment: &Segment, fields: Fields) -> bool {
    let options = &segment.options;
    fields.has(Field::Mss) && options.mss.is_some()
        || fields.has(Field::WindowScale) && options.window_scale.is_some()
        || fields.has(Field::SackPermitted) && options.sack_permitted
        || fields.has(Field::Timestamps) && options.timestamps.is_some()
}
