//! # Reno as Windows NT 4.0 had it
//!
//! Laor, Gendel: The Effect of Packet Reordering in a Backbone Link on Application Throughput. IEEE Network, 2002.
//!
//! **What it changes.** The second duplicate ACK retransmits already, which the authors saw in traces of NT 4.0 servers:
//! those lost speed under shifts of two positions where others needed three. No limited transmit.
//!
//! **Rules.** As `reno`, with dupthresh 2.
//!
//! **Reproduces.** Their Fig. 8 (shift 2).
//!
//! **Status.** Faithful to the observation; the code of NT 4.0 was not available to anyone.

use std::sync::Arc;

use reknit_units::Segments;

use crate::base::reno;
use crate::base::{fixed_threshold, limited_transmit};
use crate::composition::Composition;
use crate::variant::{Side, Status, Variant};

/// The registry's entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "reno-nt4",
    aliases: &[],
    summary: "reno with a threshold of 2 duplicate ACKs, as Windows NT 4.0 was seen to behave",
    source: "Laor and Gendel 2002",
    side: Side::Sender,
    peer_needs: "nothing",
    status: Status::Faithful,
    compose: || Composition {
        dup_thresh: Arc::new(fixed_threshold::Config { dup_thresh: Segments(2) }),
        limited_transmit: Arc::new(limited_transmit::Config::Off),
        ..(reno::VARIANT.compose)()
    },
};
