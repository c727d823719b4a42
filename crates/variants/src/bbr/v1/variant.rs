//! # BBR, version 1
//!
//! Cardwell, Cheng, Hassas Yeganeh, Jacobson: BBR Congestion Control. draft-cardwell-iccrg-bbr-congestion-control-00,
//! 2017; and what Linux 6.18 does beyond it, by its behaviour.
//!
//! **What it changes.** The window does not follow losses. The sender estimates the bottleneck's bandwidth (`BtlBw`, the
//! maximum delivery rate of ten rounds) and the propagation delay (`RTprop`, the minimum RTT of ten seconds), paces at the
//! bandwidth times a gain, and bounds what is in flight by their product times another.
//!
//! **State.** Four modes: Startup doubles the rate each round until it is flat for three; Drain empties the queue that this
//! has built; ProbeBW sends at 5/4, 3/4 and six times 1 of the bandwidth, a round trip each; ProbeRTT goes down to four
//! segments for 200 ms once the minimum RTT is ten seconds old.
//!
//! **Rules.** One file for each part of the model: `bandwidth.rs` (§4.1.1), `aggregation.rs`, `policer.rs`, `startup.rs` (§4.3.2,
//! §4.3.3), `probe_bw.rs` (§4.3.4), `probe_rtt.rs` (§4.1.2, §4.3.5), `control.rs` (§4.2). Counts are in segments, as in Linux.
//!
//! **Departures.** The phase in which ProbeBW begins is drawn from a seed and what was delivered. A minimum that has expired is
//! replaced also by an RTT that a delayed ACK may have lengthened; Linux looks for a lone short segment there.
//!
//! **Reproduces.** Linux's `bbr` over the paths of `docs/fidelity.md`.
//!
//! **Status.** Faithful.

use std::sync::Arc;

use super::Config;
use crate::base::spurious_response;
use crate::composition::Composition;
use crate::time::rack;
use crate::undo::dsack_det;
use crate::variant::{Side, Status, Variant};

/// The registry's entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "bbr1",
    aliases: &["bbr-v1"],
    summary: "bandwidth and delay instead of losses: BBR version 1 as Linux has it",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00, Linux 6.18",
    side: Side::Sender,
    peer_needs: "SACK",
    status: Status::Faithful,
    compose: || Composition {
        loss_detector: Arc::new(rack::Config::default()),
        spurious_detectors: vec![Arc::new(dsack_det::Config::default())],
        spurious_response: Arc::new(spurious_response::Config::Instant),
        congestion_control: Arc::new(Config::default()),
        ..Composition::default()
    },
};
