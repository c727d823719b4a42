//! Variants that detect losses by time instead of by the number of duplicate ACKs.

pub mod dcr;
mod gvisor;
pub(crate) mod overtaking;
pub mod pr;
pub mod pr_envelope;
pub mod rack;

use crate::algorithms::{LimitedTransmit, SpuriousResponse};
use crate::base::{cubic, limited_transmit, prr, undo_limit};
use crate::composition::Composition;
use crate::pages;
use crate::undo::dsack_det;
use crate::variant::{ChangedEnd, Status, Variant};

/// The variants, in the order of lists.
pub const VARIANTS: &[Variant] = &[DCR, PR, RACK, gvisor::GVISOR, gvisor::GVISOR_UNDO];

const DCR: Variant = Variant {
    name: "dcr",
    aliases: &["tcp-dcr"],
    summary: "fast retransmit one round trip after the first duplicate ACK, whatever their number",
    source: "TCP-DCR, NETWORKING 2004; survey section 6.1.4",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, a receive buffer of two windows",
    status: Status::Partial,
    page: &pages::TIME_DCR,
    compose: || Composition {
        loss_detector: dcr::DelayedResponseConfig::default().into(),
        limited_transmit: LimitedTransmit::EverySack {},
        ..Composition::default()
    },
};

const PR: Variant = Variant {
    name: "pr",
    aliases: &["tcp-pr"],
    summary: "a segment counts as lost once it has been outstanding for three times the longest recent RTT; does not count duplicate ACKs as a sign of loss",
    source: "TCP-PR, Transactions on Networking 2006; survey section 6.2.1",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, for more precise timing",
    status: Status::Partial,
    page: &pages::TIME_PR,
    compose: || Composition {
        loss_detector: pr::SegmentClocksConfig::default().into(),
        loss_response: pr::WindowAtSendingConfig {}.into(),
        fast_recovery: pr::OutstandingConfig {}.into(),
        rto_estimator: pr_envelope::RttEnvelopeConfig::default().into(),
        limited_transmit: pr::OutstandingTransmitConfig {}.into(),
        congestion_control: pr::PerSegmentConfig {}.into(),
        without_sack: None,
        ..Composition::default()
    },
};

const RACK: Variant = Variant {
    name: "rack",
    aliases: &["rack-tlp"],
    summary: "time-based detection and tail loss probe, with PRR, CUBIC and DSACK undo",
    source: "RFC 8985, RFC 9937, RFC 9438",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK to adapt",
    status: Status::Faithful,
    page: &pages::TIME_RACK,
    compose: || Composition {
        loss_detector: rack::RackConfig::default().into(),
        spurious_detectors: vec![dsack_det::DsackConfig::default().into()],
        undo_limit: undo_limit::BoundedConfig::default().into(),
        spurious_response: SpuriousResponse::Instant {},
        fast_recovery: prr::PrrConfig::default().into(),
        limited_transmit: limited_transmit::PipeLimitConfig { spreads_bursts: false }.into(),
        congestion_control: cubic::CubicConfig::default().into(),
        ..Composition::default()
    },
};
