//! # Linux before RACK
//!
//! Linux 3.18 (2014) with its default congestion control, as a sender and as a receiver: its source,
//! `net/ipv4/tcp_input.c` and `tcp_output.c`. Mathis, Mahdavi: Forward Acknowledgement, SIGCOMM 1996. RFC 5827, RFC 9438.
//!
//! **What it changes.** Losses are detected by distance in the sequence space instead of by time. Until reordering is
//! seen, every hole more than three segments below the highest SACKed one is lost (FACK). After that SACKed segments are
//! counted, against a threshold that grows to the largest reordering seen, at most 127 segments (`tcp_reordering`). For few
//! outstanding segments there is early retransmit. Reductions are undone by DSACK, timestamps and F-RTO as in `linux`. The
//! receiver does not compress SACKs.
//!
//! **State.** Besides that of its algorithms: whether FACK and early retransmit are still in use.
//!
//! **Rules.** Those of `linux-fack`, with the function of the kernel that each is from. The threshold is `linux-reordering`
//! with a maximum of 127; proportional rate reduction is `linux-prr` without `SafeACK`, which came in 4.3. The other parts
//! are those of `linux`: they are modelled on Linux 6.18.
//!
//! **Departures.** This is not compared with a running kernel of that version. Of what differs from 6.18 outside loss
//! detection, only what is named above is modelled. Not modelled: an undo restores the last maximum of CUBIC, which fast
//! convergence may have lowered, instead of the window before the reduction; proportional rate reduction does not count the
//! duplicates that a DSACK reports.
//!
//! **Later versions.** 3.19 has a limit of 300 segments for the threshold (`tcp_max_reordering`), which is
//! `dup_thresh.linux-reordering.max` and `loss_detector.linux-fack.reordering.max` here. From 4.4, RACK runs in recovery in
//! addition. FACK was removed in 4.15.
//!
//! **Status.** Partial: written from the source of the kernel, not compared with its traces.

use super::{acks, fack, prr, variant};
use crate::composition::Composition;
use crate::pages;
use crate::variant::{Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "linux-3.18",
    aliases: &["linux-fack"],
    summary: "Linux before RACK: FACK until reordering is seen, then a threshold as large as the reordering",
    source: "Linux 3.18; RFC 5827",
    status: Status::Partial,
    page: &pages::LINUX_BEFORE_RACK,
    compose: || Composition {
        loss_detector: fack::LinuxFackConfig::default().into(),
        dup_thresh: fack::LinuxFackConfig::default().reordering.into(),
        fast_recovery: prr::LinuxPrrConfig { safe_ack: false }.into(),
        ack_policy: acks::LinuxAcksConfig { sack_segments: 0, ..acks::LinuxAcksConfig::default() }.into(),
        ..(variant::VARIANT.compose)()
    },
    ..variant::VARIANT
};
