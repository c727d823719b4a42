//! # BBR, version 3
//!
//! Cardwell, Swett, Beshay: BBR Congestion Control. draft-ietf-ccwg-bbr-06, 2026.
//!
//! **What it changes.** As version 1 it steers by a model of the path: the bandwidth of the last two probing cycles and the
//! minimum RTT of ten seconds. New is that losses bound the model: a long-term bound on what is in flight, set where probing
//! lost more than 2 %, and short-term bounds on rate and volume for losses at other times.
//!
//! **State.** Startup doubles the rate each round until it is flat for three rounds or loses too much; Drain halves it until the
//! queue is gone; ProbeBW goes through Down (0.9), Cruise (1), Refill (1) and Up (1.25), probing every two to three seconds or
//! as often as Reno would; ProbeRTT halves what is in flight for 200 ms once the minimum RTT is five seconds old.
//!
//! **Rules.** One file for each of the draft's sections: `rounds.rs` (§5.5.1 to §5.5.6), `aggregation.rs` (§5.5.9), `startup.rs`
//! (§5.3.1), `drain.rs` (§5.3.2), `probe_bw.rs` (§5.3.3), `probe_rtt.rs` (§5.3.4, §5.5.7), `bounds.rs` (§5.5.10), `undo.rs`
//! (§5.5.11), `control.rs` (§5.6). Names are the draft's.
//!
//! **Departures.** What the draft draws at random comes from a seed and what was delivered. An ACK that delivers nothing changes nothing.
//! Around it stands what stands around `rack`: detection by RFC 8985 and undo by DSACK.
//!
//! **Reproduces.** The draft's test cases (its appendix A), in `tests/vectors/bbr.rs`.
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
    name: "bbr",
    aliases: &["bbr3"],
    summary: "bandwidth and delay instead of losses, bounded by losses: BBR version 3",
    source: "draft-ietf-ccwg-bbr-06",
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
