//! What a variant is: a named combination of parts, as the file of its algorithm states it.

use std::fmt;

use crate::composition::Composition;

/// Which end of a connection a variant changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The sender alone.
    Sender,
    /// The receiver alone.
    Receiver,
    /// Both ends.
    Both,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
            Side::Both => "both",
        })
    }
}

/// How far a variant follows its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Every rule of the source, tested against its own examples.
    Faithful,
    /// Some rules are our reading; the file names them.
    Partial,
    /// Not yet checked against the source's numbers.
    Untested,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Status::Faithful => "faithful",
            Status::Partial => "partial",
            Status::Untested => "untested",
        })
    }
}

/// A named combination of plug-ins. Only this crate makes them: each is in [`VARIANTS`](crate::VARIANTS).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Variant {
    /// The official name.
    pub name: &'static str,
    /// Other names under which it is found.
    pub aliases: &'static [&'static str],
    /// One line for a list.
    pub summary: &'static str,
    /// Paper or RFC, with the section.
    pub source: &'static str,
    /// Which end it changes.
    pub side: Side,
    /// What the other end must support.
    pub peer_needs: &'static str,
    /// How far it follows its source.
    pub status: Status,
    /// Its plug-ins.
    pub compose: fn() -> Composition,
}
