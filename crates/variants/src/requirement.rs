//! What a part requires of the rest of its variant, and of the peer.

use reknit_tcp::seams::Seam;
use std::fmt;

use reknit_tcp::Info;
use reknit_tcp::experiment::Features;

/// What an algorithm requires of the rest of its variant, or of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Requirement {
    /// Only these algorithms may fill the seam, because this algorithm decides the same thing itself.
    Only(Seam, &'static [&'static str]),
    /// It withholds acknowledgments. At most one part of an end may do so.
    Withholds,
    /// It waits before it marks a segment lost. This adds to the time for which a receiver withholds ACKs.
    Waits,
    /// Its threshold may exceed the window, so it depends on the ACKs caused by limited transmit.
    MayExceedWindow,
    /// It needs this from the peer; the text describes what happens without it.
    Needs(Need, &'static str),
}

impl Requirement {
    /// True if the rule needs this from the peer.
    pub fn needs(&self, what: Need) -> bool {
        matches!(self, Requirement::Needs(need, _) if *need == what)
    }
}

/// The rule of detectors and recoveries that `Composition::without_sack` replaces.
pub const NEEDS_SACK: Requirement = Requirement::Needs(Need::Sack, "losses are detected and repaired as in `newreno`");

/// What a peer may or may not support.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Selective acknowledgments.
    Sack,
    /// Timestamps.
    Timestamps,
    /// An experimental feature.
    Feature(Features),
}

impl Need {
    pub(crate) fn is_met(self, info: &Info) -> bool {
        match self {
            Need::Sack => info.sack,
            Need::Timestamps => info.timestamps,
            Need::Feature(features) => info.features.has(features),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Sack => f.write_str("SACK"),
            Need::Timestamps => f.write_str("timestamps"),
            Need::Feature(features) => write!(f, "`{features}` in the experimental option"),
        }
    }
}
