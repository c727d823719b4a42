//! Variants that wait before a fast retransmit, in case the segment is only late.

pub mod paxson_snd;
pub mod time_delayed;

use reknit_units::Segments;

use self::time_delayed::Growth;
use crate::base::fixed_threshold;
use crate::composition::Composition;
use crate::pages;
use crate::threshold;
use crate::variant::{ChangedEnd, Status, Variant};

/// The variants, in the order of lists.
pub const VARIANTS: &[Variant] = &[BA_TIMEDEL, BA_TIMEINC, PAXSON_SND];

const PAXSON_SND: Variant = Variant {
    name: "paxson-snd",
    aliases: &[],
    summary: "fast retransmit 20 ms after the second duplicate ACK, if the hole is still open",
    source: "Paxson 1999; Yang 2001, section 2.3.2",
    side: ChangedEnd::Sender,
    peer_needs: "SACK",
    status: Status::Faithful,
    page: &pages::WAIT_PAXSON_SND,
    compose: || Composition {
        dup_thresh: fixed_threshold::FixedConfig { dup_thresh: Segments(2) }.into(),
        postponements: vec![paxson_snd::FixedWaitConfig::default().into()],
        ..Composition::default()
    },
};

/// TIMEDEL.
const BA_TIMEDEL: Variant = Variant {
    name: "ba-timedel",
    aliases: &["dsack-bl-timedel"],
    summary: "after three duplicate ACKs, waits for the longest delay of a spuriously retransmitted segment so far",
    source: "Blanton and Allman 2002; RR-TCP section 3",
    side: ChangedEnd::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Faithful,
    page: &pages::WAIT_TIME_DELAYED,
    compose: || delayed(Growth::Measured),
};

/// TIMEINC.
const BA_TIMEINC: Variant = Variant {
    name: "ba-timeinc",
    aliases: &["dsack-bl-timeinc"],
    summary: "after three duplicate ACKs, waits 10 ms longer for each spurious fast retransmit so far",
    source: "Blanton and Allman 2002; RR-TCP section 3; survey section 6.1.3",
    page: &pages::WAIT_TIME_DELAYED,
    compose: || delayed(Growth::Step),
    ..BA_TIMEDEL
};

fn delayed(growth: Growth) -> Composition {
    Composition {
        postponements: vec![
            time_delayed::TimeDelayedConfig { growth, ..time_delayed::TimeDelayedConfig::default() }.into(),
        ],
        ..threshold::repaired()
    }
}
