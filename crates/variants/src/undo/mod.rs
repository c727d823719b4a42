//! Variants that detect a spurious window reduction and undo it.

pub(crate) mod ba_r;
pub mod door;
pub mod dsack_det;
pub(crate) mod dsack_r;
pub mod dsack_repeat;
pub(crate) mod dsack_ss;
pub mod eifel;
pub mod frto;
pub mod retransmitted;
pub mod rto_adaptk;

use self::eifel::Evidence;
use self::frto::Version;
use crate::algorithms::SpuriousResponse;
use crate::base::rfc4015;
use crate::composition::Composition;
use crate::pages;
use crate::variant::{ChangedEnd, Status, Variant};

/// The variants, in the order of lists.
pub const VARIANTS: &[Variant] = &[
    dsack_ss::VARIANT,
    dsack_r::VARIANT,
    DSACK_REPEAT,
    ba_r::VARIANT,
    EIFEL,
    EIFEL_RTX,
    FRTO_2002,
    FRTO_2002_DSACK,
    FRTO,
    FRTO_SACK,
    DOOR,
    RTO_ADAPTK,
];

const DOOR: Variant = Variant {
    name: "door",
    aliases: &["tcp-door"],
    summary: "sack + packet numbers that show reordering; then no reductions for a while, and the last one is undone",
    source: "Wang and Zhang, MobiHoc 2002; survey section 5.1.2",
    side: ChangedEnd::Both,
    peer_needs: "SACK, the experimental option `ordinals`; without it timestamps",
    status: Status::Partial,
    page: &pages::UNDO_DOOR,
    compose: || Composition {
        spurious_detectors: vec![door::DoorConfig::default().into()],
        spurious_response: SpuriousResponse::Restore {},
        header_support: vec![door::OrdinalsConfig {}.into()],
        ..Composition::default()
    },
};

const DSACK_REPEAT: Variant = Variant {
    name: "dsack-repeat",
    aliases: &[],
    summary: "dsack-r with each duplicate reported in three ACKs",
    source: "survey section 8.2",
    side: ChangedEnd::Both,
    peer_needs: "SACK, DSACK, the experimental option `repeats`",
    status: Status::Partial,
    page: &pages::UNDO_DSACK_REPEAT,
    compose: || Composition {
        header_support: vec![dsack_repeat::DsackRepeatConfig::default().into()],
        ..(dsack_r::VARIANT.compose)()
    },
};

/// Eifel as in the RFCs.
const EIFEL: Variant = Variant {
    name: "eifel",
    aliases: &["rfc3522"],
    summary: "sack + timestamps that distinguish originals from retransmissions; the response of RFC 4015",
    source: "RFC 3522, RFC 4015; survey section 5.1.1",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, timestamps",
    status: Status::Faithful,
    page: &pages::UNDO_EIFEL,
    compose: || Composition { timestamps: Some(true), ..eifel_with(Evidence::Timestamps) },
};

/// Eifel with a bit instead of timestamps.
const EIFEL_RTX: Variant = Variant {
    name: "eifel-rtx",
    aliases: &[],
    summary: "eifel with an echoed retransmission bit",
    source: "RR-TCP, ICSI TR-02-006, section 3; RFC 3522 section 3.2",
    side: ChangedEnd::Both,
    peer_needs: "SACK, the experimental option `retransmitted`; without it timestamps",
    status: Status::Faithful,
    page: &pages::UNDO_EIFEL,
    compose: || Composition {
        header_support: vec![retransmitted::RetransmittedConfig {}.into()],
        ..eifel_with(Evidence::Retransmitted)
    },
};

fn eifel_with(evidence: Evidence) -> Composition {
    Composition {
        spurious_detectors: vec![eifel::EifelConfig { evidence, ..eifel::EifelConfig::default() }.into()],
        spurious_response: SpuriousResponse::Rfc4015 {},
        rto_estimator: rfc4015::Rfc4015Config::default().into(),
        ..Composition::default()
    }
}

/// The paper of 2002.
const FRTO_2002: Variant = Variant {
    name: "frto-2002",
    aliases: &[],
    summary: "sack + forward RTO recovery; the window stays halved after a spurious timeout",
    source: "Sarolahti, Kojo, Raatikainen, Helsinki C-2002-07, section 3",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, for loss recovery only",
    status: Status::Faithful,
    page: &pages::UNDO_FRTO,
    compose: || Composition { spurious_response: SpuriousResponse::Halve {}, ..frto_with(Version::Paper2002) },
};

/// The paper's proposal for further work.
const FRTO_2002_DSACK: Variant = Variant {
    name: "frto-2002+dsack",
    aliases: &["frto-2002-dsack"],
    summary: "frto-2002 + slow start back to the old window once DSACK proves the timeout spurious",
    source: "Sarolahti, Kojo, Raatikainen, Helsinki C-2002-07, section 6",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Partial,
    page: &pages::UNDO_FRTO,
    compose: || Composition {
        spurious_detectors: vec![dsack_det::DsackConfig::default().into()],
        spurious_response: SpuriousResponse::HalveThenSlowStart {},
        ..frto_with(Version::Paper2002)
    },
};

/// The RFC's basic algorithm.
const FRTO: Variant = Variant {
    name: "frto",
    aliases: &["rfc5682"],
    summary: "sack + forward RTO recovery; the response of RFC 4015 after a spurious timeout",
    source: "RFC 5682 section 2; RFC 4015",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, for loss recovery only",
    status: Status::Faithful,
    page: &pages::UNDO_FRTO,
    compose: || with_rfc4015(Version::Basic),
};

/// The RFC's algorithm for SACK.
const FRTO_SACK: Variant = Variant {
    name: "frto-sack",
    aliases: &[],
    summary: "frto that checks which data is acknowledged, so that duplicate ACKs do not end it",
    source: "RFC 5682 section 3; RFC 4015",
    side: ChangedEnd::Sender,
    peer_needs: "SACK",
    status: Status::Faithful,
    page: &pages::UNDO_FRTO,
    compose: || with_rfc4015(Version::Sack),
};

fn frto_with(version: Version) -> Composition {
    Composition { timeout_recovery: frto::FrtoConfig { version }.into(), ..Composition::default() }
}

fn with_rfc4015(version: Version) -> Composition {
    Composition {
        spurious_response: SpuriousResponse::Rfc4015 {},
        rto_estimator: rfc4015::Rfc4015Config::default().into(),
        ..frto_with(version)
    }
}

const RTO_ADAPTK: Variant = Variant {
    name: "rto-adaptk",
    aliases: &[],
    summary: "dsack-r with a retransmission timeout that each spurious timeout makes longer",
    source: "RR-TCP, ICSI TR-02-006, section 6",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Partial,
    page: &pages::UNDO_RTO_ADAPTK,
    compose: || Composition {
        rto_estimator: rto_adaptk::AdaptiveKConfig::default().into(),
        spurious_detectors: vec![dsack_det::DsackConfig::default().into()],
        spurious_response: SpuriousResponse::Instant {},
        ..Composition::default()
    },
};
