//! What lets a window grow: bytes acknowledged cumulatively, as in the RFCs, or bytes delivered.
//!
//! While the first segment is missing, cumulative acknowledgments do not advance although data arrives; afterwards one
//! ACK covers many segments. Under persistent reordering the window hardly grows that way. SACK blocks report each
//! segment when it arrives.

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seq::Offset;
use reknit_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which bytes count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// Bytes by which SND.UNA advances (RFC 3465, RFC 9438).
    #[default]
    Acked,
    /// Bytes acknowledged or SACKed for the first time.
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

    /// The highest byte that has arrived: a round trip ends when this passes the SND.NXT of its beginning.
    pub(crate) fn edge(self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Offset {
        let highest = match self {
            Progress::Acked => None,
            Progress::Delivered => ack.highest.and_then(|id| cx.board.get(id)),
        };
        highest.map_or(ack.ack, |record| record.end().max(ack.ack))
    }
}
