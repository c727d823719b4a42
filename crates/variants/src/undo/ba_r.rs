//! # DSACK-BL-R
//!
//! Blanton, Allman: On Making TCP More Robust to Packet Reordering. ACM CCR 32(1), 2002, without their adaptive
//! threshold, as compared in Zhang, Karp, Floyd, Peterson: RR-TCP, ICSI TR-02-006, 2002, §3.
//!
//! **What it changes.** `dsack-ss` with the limited transmit of Blanton and Allman.
//!
//! **Rules.** Detection is by DSACK (`dsack`). In response, ssthresh becomes at least the old cwnd, so that slow
//! start leads back to it. The first and the second duplicate ACK each release a segment, and then every second one
//! does. dupthresh stays 3.
//!
//! **Departures.** None known. Detection follows RR-TCP (§3), which says only that the window is restored. That slow start
//! restores it is from the survey (§5.1.3, §5.2.2), as is limited transmit.
//!
//! **Use.** The base of `ba-inc`, `ba-avg`, `ba-ewma` and `ba-timedel`: it shows the effect of DSACK alone.
//!
//! **Status.** Faithful.

use crate::algorithms::{LimitedTransmit, SpuriousResponse};
use crate::composition::Composition;
use crate::pages;
use crate::undo::dsack_det;
use crate::variant::{ChangedEnd, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "ba-r",
    aliases: &["dsack-bl-r"],
    summary: "sack + DSACK detection; slow start back to the old window, new data on every second duplicate ACK",
    source: "RR-TCP, ICSI TR-02-006, section 3",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Faithful,
    page: &pages::UNDO_BA_R,
    compose: || Composition {
        spurious_detectors: vec![dsack_det::DsackConfig::default().into()],
        spurious_response: SpuriousResponse::SlowStart {},
        limited_transmit: LimitedTransmit::EverySecond {},
        ..Composition::default()
    },
};
