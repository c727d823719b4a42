//! What the RFCs specify for a TCP that does nothing about reordering, and what several families share.

pub mod aimd;
pub(crate) mod arrivals;
pub(crate) mod batches;
pub mod counted_pipe;
pub mod cubic;
pub mod delayed_ack;
pub(crate) mod delivery_clocked;
mod early_exit;
pub(crate) mod episode_sample;
pub mod fixed_threshold;
#[cfg(test)]
pub(crate) mod given;
pub(crate) mod hystart;
mod hystart_plus;
pub mod limited_transmit;
pub mod newreno;
pub mod no_timer;
pub mod progress;
pub mod prr;
pub mod reno;
pub(crate) mod reno_nt4;
pub mod respond_at_once;
pub mod rfc4015;
pub mod rfc6298;
pub mod sack;
pub(crate) mod silence;
pub mod spurious_response;
pub mod timeout;
pub mod undo_limit;

use crate::composition::Composition;
use crate::pages;
use crate::variant::{ChangedEnd, Status, Variant};

/// The variants, in the order of lists.
pub const VARIANTS: &[Variant] = &[RENO, reno_nt4::VARIANT, NEWRENO, SACK, SACK_1996];

const SACK_1996: Variant = Variant {
    name: "sack-1996",
    aliases: &[],
    summary: "sack whose recovery counts transmissions and duplicate ACKs, as before RFC 3517; stalls after many losses",
    source: "Fall and Floyd 1996",
    side: ChangedEnd::Sender,
    peer_needs: "SACK",
    status: Status::Faithful,
    page: &pages::BASE_COUNTED_PIPE,
    compose: || Composition {
        fast_recovery: counted_pipe::CountedPipeConfig::default().into(),
        ..Composition::default()
    },
};

const NEWRENO: Variant = Variant {
    name: "newreno",
    aliases: &[],
    summary: "reno with a fast recovery that continues after partial ACKs; no SACK",
    source: "RFC 6582",
    side: ChangedEnd::Sender,
    peer_needs: "nothing",
    status: Status::Faithful,
    page: &pages::BASE_NEWRENO,
    compose: || Composition {
        loss_detector: newreno::PartialAcksConfig {}.into(),
        fast_recovery: newreno::DeflateConfig {}.into(),
        sack: false,
        ..Composition::default()
    },
};

pub(crate) const RENO: Variant = Variant {
    name: "reno",
    aliases: &[],
    summary: "fast retransmit after 3 duplicate ACKs; a partial ACK ends fast recovery; no SACK",
    source: "RFC 2581; RFC 5681 section 3.2",
    side: ChangedEnd::Sender,
    peer_needs: "nothing",
    status: Status::Faithful,
    page: &pages::BASE_RENO,
    compose: || Composition {
        loss_detector: reno::CountedDuplicatesConfig::default().into(),
        fast_recovery: reno::InflateConfig {}.into(),
        sack: false,
        ..Composition::default()
    },
};

const SACK: Variant = Variant {
    name: "sack",
    aliases: &["rfc6675"],
    summary: "loss recovery based on SACK; all other variants with SACK build on it",
    source: "RFC 6675",
    side: ChangedEnd::Sender,
    peer_needs: "SACK",
    status: Status::Faithful,
    page: &pages::BASE_SACK,
    compose: Composition::default,
};
