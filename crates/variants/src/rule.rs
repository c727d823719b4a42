//! What a part asks of the rest of its variant, and of the peer.

use std::fmt;

use reknit_tcp::Info;
use reknit_tcp::experiment::Features;

use crate::seam::Seam;

/// What an algorithm asks of the rest of its variant, or of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Nothing but these may fill the seam: the algorithm answers its question itself.
    Only(Seam, &'static [&'static str]),
    /// It holds acknowledgments back. At most one part of an end may.
    Withholds,
    /// It waits for a time to pass before it marks a segment lost, which adds to what a receiver holds back.
    Waits,
    /// Its threshold may exceed the window, so that only limited transmit keeps ACKs coming.
    MayExceedWindow,
    /// It needs this of the peer; the text says what happens without.
    Needs(Need, &'static str),
}

impl Rule {
    /// True if it says that this is needed of the peer.
    pub fn needs(&self, what: Need) -> bool {
        matches!(self, Rule::Needs(need, _) if *need == what)
    }
}

/// The rule of detectors and recoveries that `Composition::without_sack` replaces.
pub const NEEDS_SACK: Rule = Rule::Needs(Need::Sack, "losses are found and repaired as by `newreno`");

/// What a peer may or may not do.
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
