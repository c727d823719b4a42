//! A reference for senders: variants that get information which no real sender has.

pub mod oracle;

use crate::algorithms::LossDetector;
use crate::base::{delivery_clocked, newreno};
use crate::bbr;
use crate::composition::Composition;
use crate::pages;
use crate::variant::{ChangedEnd, Status, Variant};

/// The variants, in the order of lists.
pub const VARIANTS: &[Variant] = &[ORACLE, ORACLE_RENO, ORACLE_BBR, ORACLE_BBR1];

/// The reference for senders with CUBIC growth.
const ORACLE: Variant = Variant {
    name: "oracle",
    aliases: &["oracle-cubic"],
    summary: "reference, in simulation only: the simulator tells the sender which packets were lost; its window grows as in CUBIC",
    source: "this project",
    side: ChangedEnd::Sender,
    peer_needs: "SACK",
    status: Status::Original,
    page: &pages::LIMIT_ORACLE,
    compose: || composition(delivery_clocked::with_cubic),
};

/// The reference for senders with Reno growth.
const ORACLE_RENO: Variant = Variant {
    name: "oracle-reno",
    summary: "reference, in simulation only: the simulator tells the sender which packets were lost; its window grows as in Reno",
    aliases: &[],
    page: &pages::LIMIT_ORACLE,
    compose: || composition(delivery_clocked::with_reno),
    ..ORACLE
};

/// What `bbr` reaches if nothing but real losses counts as loss.
const ORACLE_BBR: Variant = Variant {
    name: "oracle-bbr",
    summary: "bbr that the simulator tells about each real loss, in simulation only",
    aliases: &[],
    page: &pages::LIMIT_ORACLE,
    compose: || composition(with_bbr),
    ..ORACLE
};

/// The same with version 1.
const ORACLE_BBR1: Variant = Variant {
    name: "oracle-bbr1",
    summary: "bbr1 that the simulator tells about each real loss, in simulation only",
    aliases: &[],
    page: &pages::LIMIT_ORACLE,
    compose: || composition(with_bbr1),
    ..ORACLE
};

fn with_bbr(loss_detector: LossDetector) -> Composition {
    delivery_clocked::with(loss_detector, bbr::v3::BbrConfig::default().into())
}

fn with_bbr1(loss_detector: LossDetector) -> Composition {
    delivery_clocked::with(loss_detector, bbr::v1::Bbr1Config::default().into())
}

fn composition(with: fn(LossDetector) -> Composition) -> Composition {
    Composition {
        timestamps: Some(false),
        without_sack: Some(newreno::recovery_without_sack),
        ..with(oracle::OracleConfig {}.into())
    }
}
