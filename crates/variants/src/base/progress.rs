//! What makes a window grow: bytes that are acknowledged cumulatively, as in the RFCs, or bytes that are delivered.
//!
//! With a hole at the left edge cumulative acknowledgments stop although data arrive, and then tell of many segments at
//! once. Under persistent reordering that starves a window; SACK blocks tell of each segment when it arrives.

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seq::Offset;
use reknit_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which bytes count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// Those that SND.UNA advances by (RFC 3465, RFC 9438).
    #[default]
    Acked,
    /// Those that are ACKed or SACKed for the first time.
    Delivered,
}

impl Progress {
    /// How many bytes this ACK adds.
    pub(crate) fn of(self, ack: &AckFacts<'_>) -> Bytes {
        match self {
            Progress::Acked => ack.advance(),
            Progress::Delivered => ack.delivered,
        }
    }

    /// Up to where data have arrived: a round trip is over when this passes SND.NXT of its beginning.
    pub(crate) fn edge(self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Offset {
        let highest = match self {
            Progress::Acked => None,
            Progress::Delivered => ack.highest.and_then(|id| cx.board.get(id)),
        };
        highest.map_or(ack.ack, |record| record.end().max(ack.ack))
    }
}
