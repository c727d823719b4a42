//! # reknit with BBR
//!
//! The loss detection of `reknit`, with the congestion control of BBR version 1. It is for paths that reorder and lose packets at
//! random, such as bonded wireless links.
//!
//! **What it changes.** A segment is retransmitted if it has been missing for longer than late segments usually take on
//! this path, as in `reknit`. The rate and the window follow BBR's estimates of bandwidth and delay, as in `bbr1`, so a loss
//! does not reduce them beyond one round trip.
//!
//! **State.** That of `reknit` and that of `bbr1`.
//!
//! **Rules.**
//! - *Retransmit.* The rules *Learn*, *Wait*, *Repair*, *Decide*, *Probe* and *Timestamps* of `reknit`. Late segments are
//!   not retransmitted, so they cost neither bandwidth nor a round of packet conservation, and do not start Startup anew.
//! - *Rate and window.* The rules of `bbr1`. A congestion event that `reknit` has decided on starts a round in which
//!   one segment is sent for each that is delivered; its undo restores the window.
//! - *Duplicates.* As in `bbr1`, duplicates that a DSACK reports count as delivered.
//! - *Trust.* The undo limit `bounded`, as in `reknit`. BBR responds to losses too little for false evidence to gain much.
//!
//! **Departures.** From `bbr1`: loss detection, undo, and no retransmission timer. The send buffer has no limit of its own,
//! and the receiver acknowledges as RFC 9293 says, not as Linux does.
//!
//! **Status.** Original; `docs/design/reknit.md` describes the detector, and what this variant costs other flows.

use super::variant::REKNIT;
use crate::algorithms::LossDetector;
use crate::base::delivery_clocked;
use crate::bbr::v1::Bbr1Config;
use crate::composition::Composition;
use crate::pages;
use crate::variant::Variant;

/// The registry entry.
pub(crate) const REKNIT_BBR: Variant = Variant {
    name: "reknit-bbr",
    summary: "reknit whose rate and window follow BBR version 1: for paths that reorder and lose packets at random",
    page: &pages::REKNIT_BBR,
    compose: || super::variant::composition(with_bbr1),
    ..REKNIT
};

fn with_bbr1(loss_detector: LossDetector) -> Composition {
    delivery_clocked::with(loss_detector, Bbr1Config::default().into())
}
