//! Variants that adapt the number of duplicate ACKs that indicate a loss.

pub mod ancr;
pub mod blanton_allman;
pub mod leung_ma;
pub mod lpc_sender;
pub mod ncr;
mod reordering_extent;
pub mod rn;
pub mod rr;

use self::blanton_allman::Rule;
use self::ncr::Mode;
use self::rr::variants as rr_tcp;
use crate::algorithms::{LimitedTransmit, SpuriousResponse};
use crate::base::limited_transmit;
use crate::composition::Composition;
use crate::pages;
use crate::undo::dsack_det;
use crate::variant::{ChangedEnd, Status, Variant};

/// The variants, in the order of lists.
pub const VARIANTS: &[Variant] = &[
    LPC_SENDER,
    BA_INC,
    BA_AVG,
    BA_EWMA,
    rr_tcp::FA,
    rr_tcp::FA_RTX,
    rr_tcp::FAES,
    rr_tcp::TA,
    rr_tcp::TA_RTX,
    rr_tcp::TAES,
    rr_tcp::TAES_RTX,
    rr_tcp::HG,
    rr::share::VARIANT,
    RR_RCV,
    LEUNG_MA,
    LEUNG_MA_PORT,
    NCR_CAREFUL,
    NCR_AGGRESSIVE,
    ANCR_CAREFUL,
    ANCR_AGGRESSIVE,
    RN,
];

/// INC.
const BA_INC: Variant = Variant {
    name: "ba-inc",
    aliases: &["dsack-bl-inc"],
    summary: "each spurious fast retransmit raises the threshold by one; a timeout resets it",
    source: "Blanton and Allman 2002; RR-TCP section 3; survey section 5.2.2",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Faithful,
    page: &pages::THRESHOLD_BLANTON_ALLMAN,
    compose: || blanton_allman_by(Rule::Inc),
};

/// AVG.
const BA_AVG: Variant = Variant {
    name: "ba-avg",
    aliases: &["dsack-bl-avg"],
    summary: "each spurious fast retransmit raises the threshold halfway to the number of duplicate ACKs required",
    status: Status::Partial,
    page: &pages::THRESHOLD_BLANTON_ALLMAN,
    compose: || blanton_allman_by(Rule::Avg),
    ..BA_INC
};

/// EWMA.
const BA_EWMA: Variant = Variant {
    name: "ba-ewma",
    aliases: &["dsack-bl-ewma"],
    summary: "the threshold is a moving average of the number of duplicate ACKs that late segments caused",
    status: Status::Partial,
    page: &pages::THRESHOLD_BLANTON_ALLMAN,
    compose: || blanton_allman_by(Rule::Ewma),
    ..BA_INC
};

fn blanton_allman_by(rule: Rule) -> Composition {
    Composition {
        dup_thresh: blanton_allman::BlantonAllmanConfig { rule, ..blanton_allman::BlantonAllmanConfig::default() }
            .into(),
        ..repaired()
    }
}

/// What all schemes of the authors share: proof by DSACK, slow start back to the old window, and limited transmit that
/// continues on every second duplicate ACK.
pub(crate) fn repaired() -> Composition {
    Composition {
        spurious_detectors: vec![dsack_det::DsackConfig::default().into()],
        spurious_response: SpuriousResponse::SlowStart {},
        limited_transmit: LimitedTransmit::EverySecond {},
        ..Composition::default()
    }
}

const LEUNG_MA: Variant = Variant {
    name: "leung-ma",
    aliases: &["leungma"],
    summary: "the threshold is a moving average of reordering lengths plus their deviation, limited by the timeout",
    source: "Leung and Ma 2005; survey section 5.2.4",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Partial,
    page: &pages::THRESHOLD_LEUNG_MA,
    compose: || leung_ma_with(leung_ma::LeungMaConfig::default()),
};

/// With the constants of an implementation by others.
const LEUNG_MA_PORT: Variant = Variant {
    name: "leung-ma-port",
    aliases: &[],
    summary: "leung-ma with the constants of an implementation by others; needs a timeout of three round trips",
    page: &pages::THRESHOLD_LEUNG_MA,
    compose: || leung_ma_with(leung_ma::LeungMaConfig::port()),
    ..LEUNG_MA
};

fn leung_ma_with(config: leung_ma::LeungMaConfig) -> Composition {
    Composition { dup_thresh: config.into(), ..repaired() }
}

const LPC_SENDER: Variant = Variant {
    name: "lpc-sender",
    aliases: &["lee-park-choi"],
    summary: "a threshold that grows with the logarithm of the number of paths, which must be configured",
    source: "Lee, Park and Choi 2002; survey section 5.2.1",
    side: ChangedEnd::Sender,
    peer_needs: "SACK",
    status: Status::Partial,
    page: &pages::THRESHOLD_LPC_SENDER,
    compose: || Composition {
        dup_thresh: lpc_sender::PathsConfig::default().into(),
        limited_transmit: limited_transmit::PerSackConfig { windows: 1.0 }.into(),
        ..Composition::default()
    },
};

/// The registry entry of the careful variant.
const NCR_CAREFUL: Variant = Variant {
    name: "ncr-careful",
    aliases: &["ncr"],
    summary: "a threshold of 2/3 of the outstanding data; until then new data for every second SACKed segment",
    source: "RFC 4653",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, a receive buffer of two windows",
    status: Status::Faithful,
    page: &pages::THRESHOLD_NCR,
    compose: || ncr_with(Mode::Careful),
};

/// The registry entry of the aggressive variant.
const NCR_AGGRESSIVE: Variant = Variant {
    name: "ncr-aggressive",
    aliases: &[],
    summary: "a threshold of 1/2 of the outstanding data; until then new data for each SACKed segment",
    page: &pages::THRESHOLD_NCR,
    compose: || ncr_with(Mode::Aggressive),
    ..NCR_CAREFUL
};

fn ncr_with(mode: Mode) -> Composition {
    Composition {
        dup_thresh: ncr::NcrConfig { mode }.into(),
        limited_transmit: ncr::NcrConfig { mode }.into(),
        loss_response: ncr::FromBeforeDisorderConfig {}.into(),
        without_sack: Some(ncr::without_sack),
        ..Composition::default()
    }
}

/// The registry entry of the careful variant.
const ANCR_CAREFUL: Variant = Variant {
    name: "ancr-careful",
    aliases: &["ancr"],
    summary: "a threshold as large as the reordering seen so far, at most that of ncr-careful",
    source: "draft-zimmermann-tcpm-reordering-reaction-02; draft-zimmermann-tcpm-reordering-detection-02",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, timestamps or DSACK, a receive buffer of two windows",
    status: Status::Faithful,
    page: &pages::THRESHOLD_ANCR,
    compose: || ancr_with(Mode::Careful),
};

/// The registry entry of the aggressive variant.
const ANCR_AGGRESSIVE: Variant = Variant {
    name: "ancr-aggressive",
    aliases: &[],
    summary: "a threshold as large as the reordering seen so far, at most that of ncr-aggressive",
    page: &pages::THRESHOLD_ANCR,
    compose: || ancr_with(Mode::Aggressive),
    ..ANCR_CAREFUL
};

fn ancr_with(mode: Mode) -> Composition {
    Composition {
        dup_thresh: ancr::AncrConfig { mode, ..ancr::AncrConfig::default() }.into(),
        limited_transmit: ancr::AncrTransmitConfig { mode }.into(),
        loss_response: ncr::FromBeforeDisorderConfig {}.into(),
        without_sack: Some(ncr::without_sack),
        ..Composition::default()
    }
}

const RN: Variant = Variant {
    name: "rn",
    aliases: &["rn-tcp"],
    summary: "routers report drops; for a gap without drops the sender waits for six duplicate ACKs",
    source: "Sathiaseelan, Radzik 2004; survey section 5.2.5",
    side: ChangedEnd::Both,
    peer_needs: "SACK, the experimental option `drops`, routers that notify",
    status: Status::Partial,
    page: &pages::THRESHOLD_RN,
    compose: || Composition {
        dup_thresh: rn::NotifiedConfig::default().into(),
        header_support: vec![rn::DropNoticesConfig::default().into()],
        ..Composition::default()
    },
};

const RR_RCV: Variant = Variant {
    name: "rr-rcv",
    aliases: &[],
    summary: "the receiver measures reordering and advises the sender's dupthresh; dsack-r undoes what is left",
    source: "RR-TCP, ICSI TR-02-006, section 6",
    side: ChangedEnd::Both,
    peer_needs: "SACK, DSACK, the experimental option `dup-thresh`",
    status: Status::Partial,
    page: &pages::THRESHOLD_RR_RECEIVER,
    compose: || Composition {
        dup_thresh: rr::receiver::AdvisedConfig::default().into(),
        header_support: vec![rr::receiver::AdviseDupThreshConfig::default().into()],
        ..rr_tcp::fa()
    },
};
