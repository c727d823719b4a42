//! What a variant is, and every one by its name. The list itself stands in `lib.rs`, beside the files.

use std::fmt;

use crate::composition::Composition;
use crate::parts::Seam;
use crate::{FILES, VARIANTS};

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

/// A named combination of plug-ins.
#[derive(Clone, Copy, Debug)]
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

impl Variant {
    /// The name of the file in `crates/variants/src` that states it, and the file's text; the header explains it.
    pub fn file(&self) -> (&'static str, &'static str) {
        VARIANTS.iter().zip(FILES).find(|(variant, _)| variant.name == self.name).map_or(("", ""), |(_, file)| *file)
    }

    /// What it does about reordering, for lists: its first deviation from the base.
    pub fn family(&self) -> Family {
        let (base, own) = (Composition::default(), (self.compose)());
        let differs = |seam| own.faces(seam) != base.faces(seam);
        if self.side == Side::Receiver || differs(Seam::AckPolicy) {
            Family::Receiver
        } else if !own.sack {
            Family::Base
        } else if differs(Seam::LossDetector) {
            Family::Time
        } else if differs(Seam::Postponements) {
            Family::Wait
        } else if differs(Seam::DupThresh) {
            Family::Threshold
        } else if differs(Seam::SpuriousDetectors) || differs(Seam::TimeoutRecovery) || differs(Seam::LossResponse) {
            Family::Undo
        } else if Seam::ALL.into_iter().any(differs) {
            Family::Other
        } else {
            Family::Base
        }
    }
}

/// What a variant does about reordering, in the order of lists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// Nothing.
    Base,
    /// It notices spurious reductions and undoes them.
    Undo,
    /// It adapts the number of duplicates that mean loss.
    Threshold,
    /// It waits for a time before it retransmits.
    Wait,
    /// Its own detector judges by time instead of counts.
    Time,
    /// The receiver hides reordering.
    Receiver,
    /// Something else.
    Other,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Family::Base => "without any cure",
            Family::Undo => "notice a spurious reduction and undo it",
            Family::Threshold => "adapt the threshold",
            Family::Wait => "wait before retransmitting",
            Family::Time => "judge by time instead of counts",
            Family::Receiver => "hide reordering at the receiver",
            Family::Other => "others",
        })
    }
}

/// A name that no variant has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown variant `{name}`; known are {}", known())]
pub struct UnknownVariant {
    /// The name that was asked for.
    pub name: String,
}

fn known() -> String {
    VARIANTS.iter().map(|v| v.name).collect::<Vec<_>>().join(", ")
}

/// The variant called `name`; case does not matter.
///
/// # Errors
/// If there is none; the message lists all.
pub fn find(name: &str) -> Result<&'static Variant, UnknownVariant> {
    let matches = |known: &str| known.eq_ignore_ascii_case(name.trim());
    VARIANTS
        .iter()
        .find(|v| matches(v.name) || v.aliases.iter().any(|alias| matches(alias)))
        .ok_or_else(|| UnknownVariant { name: name.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lower_case() {
        let names: Vec<_> = VARIANTS.iter().flat_map(|v| std::iter::once(&v.name).chain(v.aliases)).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name} twice");
            assert_eq!(name.to_lowercase(), **name);
        }
    }

    #[test]
    fn variants_are_found_by_alias_and_in_any_case() {
        assert_eq!(find("RACK-TLP").unwrap().name, "rack");
        let error = find("tahoe").unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `tahoe`; known are reno, "), "{error}");
    }
}
