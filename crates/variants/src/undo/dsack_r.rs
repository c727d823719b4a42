//! # DSACK-R
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002, §2.1, §4.1 and Table 1.
//!
//! **What it changes.** It adds the detection of spurious fast retransmits by DSACK to `sack`, and restores the old
//! window at once.
//!
//! **Rules.** Detection is by DSACK (`dsack`). In response, cwnd and ssthresh become at least what they were before
//! (the burst limit of the connection applies). dupthresh stays 3.
//!
//! **Status.** Faithful.

use crate::algorithms::SpuriousResponse;
use crate::composition::Composition;
use crate::pages;
use crate::undo::dsack_det;
use crate::variant::{ChangedEnd, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "dsack-r",
    aliases: &[],
    summary: "sack + DSACK detection; restores the old window at once after a spurious fast retransmit",
    source: "RR-TCP, ICSI TR-02-006, section 3",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Faithful,
    page: &pages::UNDO_DSACK_R,
    compose: || Composition {
        spurious_detectors: vec![dsack_det::DsackConfig::default().into()],
        spurious_response: SpuriousResponse::Instant {},
        ..Composition::default()
    },
};
