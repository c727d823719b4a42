//! Variants in which the receiver hides reordering: it delays or withholds duplicate ACKs.

pub mod juggler;
pub mod lpc_receiver;
pub mod paxson_rcv;
pub mod yang;

use reknit_units::Segments;

use crate::base::fixed_threshold;
use crate::composition::Composition;
use crate::pages;
use crate::variant::{ChangedEnd, Status, Variant};

/// The variants, in the order of lists.
pub const VARIANTS: &[Variant] = &[YANG, PAXSON_RCV, LPC_RECEIVER, JUGGLER];

const JUGGLER: Variant = Variant {
    name: "juggler",
    aliases: &[],
    summary: "the receiver holds segments above a gap for up to 100 us, before TCP sees them",
    source: "Juggler, EuroSys 2016",
    side: ChangedEnd::Receiver,
    peer_needs: "nothing",
    status: Status::Partial,
    page: &pages::RECEIVER_JUGGLER,
    compose: || Composition { ack_policy: juggler::JugglerConfig::default().into(), ..Composition::default() },
};

const LPC_RECEIVER: Variant = Variant {
    name: "lpc-receiver",
    aliases: &[],
    summary: "the receiver sends a duplicate ACK for every second out-of-order segment, or after 40 ms",
    source: "Lee, Park, Choi 2002; survey section 6.1.1",
    side: ChangedEnd::Receiver,
    peer_needs: "nothing",
    status: Status::Partial,
    page: &pages::RECEIVER_LPC_RECEIVER,
    compose: || Composition {
        ack_policy: lpc_receiver::DelayedDuplicatesConfig::default().into(),
        ..Composition::default()
    },
};

const PAXSON_RCV: Variant = Variant {
    name: "paxson-rcv",
    aliases: &[],
    summary: "fast retransmit after 2 duplicate ACKs; the receiver sends the second one 20 ms after the first",
    source: "Paxson 1999; Yang 2001, section 2.3.2; survey section 6.1.2",
    side: ChangedEnd::Both,
    peer_needs: "SACK",
    status: Status::Partial,
    page: &pages::RECEIVER_PAXSON_RCV,
    compose: || Composition {
        dup_thresh: fixed_threshold::FixedConfig { dup_thresh: Segments(2) }.into(),
        ack_policy: paxson_rcv::HeldDuplicatesConfig::default().into(),
        ..Composition::default()
    },
};

const YANG: Variant = Variant {
    name: "yang",
    aliases: &[],
    summary: "the receiver withholds duplicate ACKs, and sends paced in-order ACKs once the late segment arrives",
    source: "Yang, MIT 2001, chapters 3 and 4",
    side: ChangedEnd::Receiver,
    peer_needs: "nothing",
    status: Status::Partial,
    page: &pages::RECEIVER_YANG,
    compose: || Composition {
        ack_policy: yang::YangConfig { imm: 0, ..yang::YangConfig::default() }.into(),
        ..Composition::default()
    },
};
