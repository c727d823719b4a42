//! # RR-TCP and its variants
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002, §4 and Table 1.
//!
//! **What it changes.** `dsack-r` with a threshold that depends on measured reordering (`rr-tcp`), and with
//! limited transmit of up to one window. Without it, a threshold above the window could never be reached (§2.3).
//!
//! **Rules.**
//!
//! | variant | paper | FA ratio | timeout |
//! |---|---|---|---|
//! | `rr-fa` | DSACK-FA | fixed | RFC 6298 |
//! | `rr-faes` | DSACK-FAES | fixed | enhanced sampling (`enhanced-sampling`) |
//! | `rr-ta` | DSACK-TA | adaptive | RFC 6298 |
//! | `rr-taes` | DSACK-TAES, the complete RR-TCP | adaptive | enhanced sampling |
//! | `rr-hg` | DSACK-HG | adaptive | 99.8th percentile of RTTs (`rtt-histogram`) |
//!
//! The FA ratio is the fraction of reordering lengths below the threshold: fixed at 90 %, or adapted to the cost of
//! mistakes. For a segment that was sent twice, the length is the mean of both copies; the variants whose name ends in
//! `-rtx` use the length of the original, which a bit identifies (§5.1.1).
//!
//! **Departures.** Limited transmit sends one segment for each newly SACKed one instead of for each duplicate ACK (§2.3), so that
//! lost ACKs do not slow it. `rr-taes-rtx` is ours: the paper (§5.1.1) has the bit with TA and FA only. The threshold is the percentile plus one, as in the paper's example, not in its text; a mean of two
//! lengths is rounded up. Only the last reduction is judged by DSACKs, although §4.1 records each fast retransmit: this costs
//! `dsack-r` a fifth of its throughput where 30 % of packets are late, and the others nothing. A false fast retransmit counts
//! once per episode; idle periods that a fast retransmit ends do not count. The ratio stays between 0 and 0.99. Counts of
//! events in the past do not adapt it, as §6 proposes.
//!
//! **Choices.** Most numbers of the paper require that the maximum window of the connection also limits limited transmit
//! (`max_window_caps = "flight"`) and that one segment per round trip is timed (`rtt_samples = "per-round"`), which are
//! the defaults; those of DSACK-TA in Figs. 7 and 10 and in Table 3 also require that recovery retransmits every hole, as
//! in ns-2 (`retransmit = "any-hole"`).
//!
//! **Status.** Faithful with a fixed FA ratio, otherwise partial. The paper (§4.3) does not say how W is sampled, nor
//! the limits of the ratio, which hardly matter; nor whether a full maximum window exhausts limited transmit. That
//! decides the ratio where this window is full (Fig. 18): `largest_window_exhausts`. For `rr-hg` (§5.3) it does not say
//! how many RTT samples are kept and for how long; with fewer than 500, the 99.8th percentile is the largest RTT.

use crate::algorithms::SpuriousResponse;
use crate::base::limited_transmit;
use crate::composition::Composition;
use crate::pages;
use crate::threshold::rr::{dup_thresh, enhanced_sampling, rtt_histogram};
use crate::undo::{dsack_det, retransmitted};
use crate::variant::{ChangedEnd, Status, Variant};

/// DSACK-FA.
pub(crate) const FA: Variant = Variant {
    name: "rr-fa",
    aliases: &["rr-fa-mean", "dsack-fa"],
    summary: "dsack-r + a threshold above 90 % of the measured reordering lengths",
    status: Status::Faithful,
    page: &pages::THRESHOLD_RR_VARIANTS,
    compose: fa,
    ..TAES
};

/// DSACK-FAES.
pub(crate) const FAES: Variant = Variant {
    name: "rr-faes",
    aliases: &["rr-faes-mean", "dsack-faes"],
    summary: "rr-fa + RTT samples of spuriously retransmitted segments",
    status: Status::Faithful,
    page: &pages::THRESHOLD_RR_VARIANTS,
    compose: || Composition { rto_estimator: enhanced_sampling::EnhancedSamplingConfig::default().into(), ..fa() },
    ..TAES
};

/// DSACK-TA.
pub(crate) const TA: Variant = Variant {
    name: "rr-ta",
    aliases: &["rr-ta-mean", "dsack-ta"],
    summary: "rr-fa with a percentile that adapts to the cost of mistakes",
    page: &pages::THRESHOLD_RR_VARIANTS,
    compose: ta,
    ..TAES
};

/// DSACK-TAES, which is RR-TCP.
pub(crate) const TAES: Variant = Variant {
    name: "rr-taes",
    aliases: &["rr-taes-mean", "dsack-taes", "rr-tcp"],
    summary: "RR-TCP: rr-ta + RTT samples of spuriously retransmitted segments",
    source: "RR-TCP, ICSI TR-02-006, section 4",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Partial,
    page: &pages::THRESHOLD_RR_VARIANTS,
    compose: taes,
};

/// DSACK-HG.
pub(crate) const HG: Variant = Variant {
    name: "rr-hg",
    aliases: &["dsack-hg"],
    summary: "rr-ta with the 99.8th percentile of the RTT as the timeout",
    source: "RR-TCP, ICSI TR-02-006, section 5.3",
    page: &pages::THRESHOLD_RR_VARIANTS,
    compose: || Composition { rto_estimator: rtt_histogram::RttHistogramConfig::default().into(), ..ta() },
    ..TAES
};

/// DSACK-FA-RTX.
pub(crate) const FA_RTX: Variant = Variant {
    name: "rr-fa-rtx",
    aliases: &["dsack-fa-rtx"],
    summary: "rr-fa with an echoed retransmission bit, which shows which copy of a segment arrived",
    status: Status::Faithful,
    page: &pages::THRESHOLD_RR_VARIANTS,
    compose: || with_bit(fa(), false),
    ..TAES_RTX
};

/// DSACK-TA-RTX.
pub(crate) const TA_RTX: Variant = Variant {
    name: "rr-ta-rtx",
    aliases: &["dsack-ta-rtx"],
    summary: "rr-ta with an echoed retransmission bit, which shows which copy of a segment arrived",
    page: &pages::THRESHOLD_RR_VARIANTS,
    compose: || with_bit(ta(), true),
    ..TAES_RTX
};

/// Ours: the paper has variants with the bit (-RTX) of TA and FA only (§5.1.1).
pub(crate) const TAES_RTX: Variant = Variant {
    name: "rr-taes-rtx",
    aliases: &["dsack-taes-rtx"],
    summary: "rr-taes with an echoed retransmission bit, which shows which copy of a segment arrived",
    source: "RR-TCP, ICSI TR-02-006, section 5.1.1",
    side: ChangedEnd::Both,
    peer_needs: "SACK, DSACK, the experimental option `retransmitted`",
    page: &pages::THRESHOLD_RR_VARIANTS,
    compose: || with_bit(taes(), true),
    ..TAES
};

/// DSACK-FA.
pub(crate) fn fa() -> Composition {
    Composition {
        dup_thresh: dup_thresh::RrTcpConfig { adaptive: false, ..dup_thresh::RrTcpConfig::default() }.into(),
        spurious_detectors: vec![dsack_det::DsackConfig::default().into()],
        spurious_response: SpuriousResponse::Instant {},
        limited_transmit: limited_transmit::PerSackConfig { windows: 1.0 }.into(),
        ..Composition::default()
    }
}

fn ta() -> Composition {
    Composition { dup_thresh: dup_thresh::RrTcpConfig::default().into(), ..fa() }
}

/// The complete RR-TCP.
pub(crate) fn taes() -> Composition {
    Composition { rto_estimator: enhanced_sampling::EnhancedSamplingConfig::default().into(), ..ta() }
}

fn with_bit(base: Composition, adaptive: bool) -> Composition {
    let sampling = dup_thresh::Sampling::Rtx;
    Composition {
        dup_thresh: dup_thresh::RrTcpConfig { adaptive, sampling, ..dup_thresh::RrTcpConfig::default() }.into(),
        header_support: vec![retransmitted::RetransmittedConfig::default().into()],
        ..base
    }
}
