//! A variant: a named combination of parts, defined in the file of its algorithm.

use std::fmt;

use crate::composition::Composition;
use crate::pages::Page;

/// Which end of a connection a variant changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangedEnd {
    /// Only the sender.
    Sender,
    /// Only the receiver.
    Receiver,
    /// Both ends.
    Both,
}

impl fmt::Display for ChangedEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ChangedEnd::Sender => "sender",
            ChangedEnd::Receiver => "receiver",
            ChangedEnd::Both => "both",
        })
    }
}

/// How far a variant follows its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Implements every rule of the source, tested against the examples in it.
    Faithful,
    /// Some rules are our reading of the source; the file lists them.
    Partial,
    /// Not yet compared with the numbers in the source.
    Untested,
    /// There is no source: this project's own.
    Original,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Status::Faithful => "faithful",
            Status::Partial => "partial",
            Status::Untested => "untested",
            Status::Original => "original",
        })
    }
}

/// A named combination of plug-ins. Only this crate defines them; all are in [`VARIANTS`](crate::VARIANTS).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Variant {
    /// The official name.
    pub name: &'static str,
    /// Other names by which it can be selected.
    pub aliases: &'static [&'static str],
    /// A one-line description for lists.
    pub summary: &'static str,
    /// Paper or RFC, with the section.
    pub source: &'static str,
    /// Which end it changes.
    pub side: ChangedEnd,
    /// What the other end must support.
    pub peer_needs: &'static str,
    /// How far it follows its source.
    pub status: Status,
    /// The description of its algorithm.
    pub page: &'static Page,
    /// Its plug-ins.
    pub compose: fn() -> Composition,
}
