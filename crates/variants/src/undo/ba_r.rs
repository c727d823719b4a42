//! # DSACK-BL-R
//!
//! Blanton, Allman: On Making TCP More Robust to Packet Reordering. ACM CCR 32(1), 2002, without its changes of the
//! threshold, as compared in Zhang, Karp, Floyd, Peterson: RR-TCP, ICSI TR-02-006, 2002, §3.
//!
//! **What it changes.** `dsack-ss` with the limited transmit of Blanton and Allman.
//!
//! **Rules.** Detection as in `dsack_det.rs`; response: ssthresh at least the old cwnd, so that slow start climbs back;
//! duplicates 1 and 2 release a segment each, then every second one. dupthresh stays 3.
//!
//! **Departures.** None known; the rules are those that RR-TCP and the survey (§5.1.3, §5.2.2) report.
//!
//! **Reproduces.** The base of `ba-inc`, `ba-avg`, `ba-ewma` and `ba-timedel`: what DSACK alone brings.
//!
//! **Status.** Faithful.

use std::sync::Arc;

use crate::base::{limited_transmit, spurious_response};
use crate::composition::Composition;
use crate::undo::dsack_det;
use crate::variant::{Side, Status, Variant};

/// The registry's entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "ba-r",
    aliases: &["dsack-bl-r"],
    summary: "sack + DSACK detection; slow start back to the old window, a segment for every second duplicate",
    source: "RR-TCP, ICSI TR-02-006, section 3",
    side: Side::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Faithful,
    compose: || Composition {
        spurious_detectors: vec![Arc::new(dsack_det::Config::default())],
        spurious_response: Arc::new(spurious_response::Config::SlowStart),
        limited_transmit: Arc::new(limited_transmit::Config::EverySecond),
        ..Composition::default()
    },
};
