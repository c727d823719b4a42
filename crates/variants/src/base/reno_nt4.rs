//! # Reno as observed in Windows NT 4.0
//!
//! Laor, Gendel: The Effect of Packet Reordering in a Backbone Link on Application Throughput. IEEE Network, 2002.
//!
//! **What it changes.** The second duplicate ACK causes a fast retransmit. The authors infer this from throughput: when
//! packets were displaced by two positions, that of NT 4.0 servers fell, and that of others did not (Fig. 8). Setting the
//! registry value `MaxDupACKs` to 3 changed nothing; they suspect that NT counts duplicate ACKs differently.
//!
//! **Rules.** As in `reno`, with dupthresh 2, and without limited transmit.
//!
//! **Departures.** A threshold of 2 is a model of what was observed. That there is no limited transmit is assumed.
//!
//! **Status.** Faithful to the observation; the source code of NT 4.0 is not public.

use reknit_units::Segments;

use crate::algorithms::LimitedTransmit;
use crate::base;
use crate::base::fixed_threshold;
use crate::composition::Composition;
use crate::pages;
use crate::variant::{ChangedEnd, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "reno-nt4",
    aliases: &[],
    summary: "reno with a threshold of 2 duplicate ACKs, as observed in Windows NT 4.0",
    source: "Laor and Gendel 2002",
    side: ChangedEnd::Sender,
    peer_needs: "nothing",
    status: Status::Faithful,
    page: &pages::BASE_RENO_NT4,
    compose: || Composition {
        dup_thresh: fixed_threshold::FixedConfig { dup_thresh: Segments(2) }.into(),
        limited_transmit: LimitedTransmit::Off {},
        ..(base::RENO.compose)()
    },
};
