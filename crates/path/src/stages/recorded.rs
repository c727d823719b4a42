//! A recorded path: each packet gets the delay or loss of a packet in a measurement, in order.

use std::fmt;
use std::path::PathBuf;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant};
use serde::Deserialize;

use super::{Drop, Exits, Item, Link, Outcome, Parameters, Spec, Stage};
use crate::random::StreamId;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// A delay, or the word `lost`, for each packet.
    #[serde(default)]
    pub packets: Vec<String>,
    /// A file with the same, one per line; `#` begins a comment.
    pub file: Option<PathBuf>,
    /// Whether the recording starts over after the last packet. Otherwise all further packets pass without delay.
    #[serde(default = "yes")]
    pub repeat: bool,
    #[serde(skip)]
    delays: Vec<Option<Duration>>,
}

fn yes() -> bool {
    true
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = self.delays.iter().filter(|delay| delay.is_none()).count();
        write!(f, "recorded delays of {} packets, {lost} of them lost", self.delays.len())?;
        f.write_str(if self.repeat { ", repeated" } else { "" })
    }
}

/// The largest recording: about ten million packets.
const LARGEST: u64 = 128 << 20;

fn delay_or_lost(text: &str) -> Result<Option<Duration>, String> {
    match text.trim() {
        "lost" => Ok(None),
        delay => delay.parse().map(Some).map_err(|error| format!("{error}, or `lost`")),
    }
}

impl Parameters for Recorded {
    fn checked(mut self) -> Result<Recorded, KeyError> {
        for (i, text) in self.packets.iter().enumerate() {
            self.delays.push(delay_or_lost(text).map_err(|message| KeyError::new(format!("packets[{i}]"), message))?);
        }
        if let Some(file) = &self.file {
            let refuse = |message: String| KeyError::new("file", format!("{}: {message}", file.display()));
            let text = reknit_config::read_file(file, LARGEST).map_err(refuse)?;
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            for (i, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
                self.delays.push(delay_or_lost(line).map_err(|message| refuse(format!("line {}: {message}", i + 1)))?);
            }
        }
        match (self.delays.is_empty(), self.packets.is_empty() || self.file.is_none()) {
            (true, _) => Err(KeyError::new("packets", "give the packets, or a `file` with at least one")),
            (false, false) => Err(KeyError::new("file", "give either `packets` or `file`")),
            (false, true) => Ok(self),
        }
    }

    fn build(&self, _id: StreamId) -> Box<dyn Stage> {
        Box::new(Replay { spec: self.clone(), next: 0 })
    }

    /// The smallest delay of the recording.
    fn in_order(&self) -> Option<Spec> {
        let delay = self.delays.iter().flatten().min().copied()?;
        Some(Spec::Link(Link { delay, ..Link::default() }))
    }
}

#[derive(Debug)]
struct Replay {
    spec: Recorded,
    next: usize,
}

impl Stage for Replay {
    fn on_packet(&mut self, at: Instant, _item: Item, _exits: &mut Exits) -> Outcome {
        if self.next == self.spec.delays.len() {
            if !self.spec.repeat {
                return Outcome::Exit(at);
            }
            self.next = 0;
        }
        let recorded = self.spec.delays[self.next];
        self.next += 1;
        recorded.map_or(Outcome::Drop(Drop::Lost), |delay| Outcome::Exit(at + delay))
    }

    fn reorders(&self) -> bool {
        true
    }
}
