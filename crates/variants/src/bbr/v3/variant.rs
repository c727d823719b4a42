//! # BBR, version 3
//!
//! Cardwell, Swett, Beshay: BBR Congestion Control. draft-ietf-ccwg-bbr-06, 2026.
//!
//! **What it changes.** Like version 1, it controls the rate by a model of the path: the maximum bandwidth of the last
//! two probing cycles and the minimum RTT of ten seconds. In addition, losses bound the model. A long-term bound on the
//! data in flight is set to the amount at which a probe lost more than 2 %. Short-term bounds on rate and data in
//! flight react to losses at other times.
//!
//! **State.** Startup doubles the rate each round until the estimated bandwidth has not grown for three rounds or too
//! much is lost. Drain halves the rate until the queue is empty. ProbeBW cycles through Down (gain 0.9), Cruise (1),
//! Refill (1) and Up (1.25), and probes every two to three seconds or as often as Reno would. ProbeRTT halves the data
//! in flight for 200 ms, once the minimum RTT is five seconds old.
//!
//! **Rules.** Those of the draft: rounds (§5.5.1 to §5.5.6), aggregation (§5.5.9), Startup (§5.3.1), Drain (§5.3.2),
//! ProbeBW (§5.3.3), ProbeRTT (§5.3.4, §5.5.7), bounds (§5.5.10), undo (§5.5.11), pacing and window (§5.6). Names are those of the draft.
//!
//! **Departures.** Random choices of the draft are computed from a seed and the bytes delivered. An ACK that delivers
//! nothing changes nothing. Loss detection and undo are outside the draft. The other parts are those of `linux`, as in
//! `bbr1`: loss detection, undo, F-RTO, timers and ACKs. They matter where packets are reordered, because a segment that
//! is wrongly marked lost lowers the bounds.
//!
//! **Limits.** If the bandwidth falls to a tenth, by the draft's rules the estimate may never follow: ProbeRTT is due
//! every five seconds, and if it begins before the round after a probe is over, that round counts as limited by the
//! application, and the filter forgets nothing (§5.3.3.6).
//!
//! **Status.** Faithful.

use super::BbrConfig;
use crate::bbr::v1;
use crate::composition::Composition;
use crate::pages;
use crate::variant::{ChangedEnd, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "bbr",
    aliases: &["bbr3"],
    summary: "BBR version 3: follows estimates of bandwidth and delay, within bounds set by losses",
    source: "draft-ietf-ccwg-bbr-06",
    side: ChangedEnd::Both,
    peer_needs: "SACK, DSACK, timestamps",
    status: Status::Faithful,
    page: &pages::BBR_V3_VARIANT,
    compose: || Composition { congestion_control: BbrConfig::default().into(), ..(v1::variant::VARIANT.compose)() },
};
