//! # DSACK TCP
//!
//! Floyd, Mahdavi, Mathis, Podolsky: RFC 2883, 2000, §5.2; Leung, Li, Yang: survey §5.1.3.
//!
//! **What it changes.** It adds the detection of spurious fast retransmits by DSACK to `sack`, and returns to the old
//! window by slow start.
//!
//! **Rules.** Detection is by DSACK (`dsack`). In response, ssthresh becomes at least the old cwnd; cwnd does not
//! change. dupthresh stays 3.
//!
//! **Status.** Faithful.

use crate::algorithms::SpuriousResponse;
use crate::composition::Composition;
use crate::pages;
use crate::undo::dsack_det;
use crate::variant::{ChangedEnd, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "dsack-ss",
    aliases: &["dsack-tcp"],
    summary: "sack + DSACK detection; slow start back to the old window after a spurious fast retransmit",
    source: "RFC 2883 section 5.2; survey section 5.1.3",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Faithful,
    page: &pages::UNDO_DSACK_SS,
    compose: || Composition {
        spurious_detectors: vec![dsack_det::DsackConfig::default().into()],
        spurious_response: SpuriousResponse::SlowStart {},
        ..Composition::default()
    },
};
