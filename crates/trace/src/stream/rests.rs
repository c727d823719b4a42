//! When a connection forgot something because it had been silent. That depends on the packets of other connections, so it is noted
//! for another reading of the capture that does not analyse these. Owned by [`super::Stream`].

use serde::{Deserialize, Serialize};

/// Rests of all connections together that are noted: beyond, another reading analyses all connections.
const MOST: usize = 1 << 20;

/// The rests of a connection.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rests {
    /// The packets of the capture after which it rested, of any connection.
    after: Vec<u64>,
}

/// How long a connection has been silent, as far as that was noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) enum Silence {
    #[default]
    None,
    Short,
    /// It has forgotten all it can.
    Long,
}

impl Rests {
    /// The connection rests after this packet. `noted`: rests of all connections together.
    pub(super) fn add(&mut self, packet: u64, noted: &mut usize) {
        *noted += 1;
        if *noted <= MOST {
            self.after.push(packet);
        }
    }

    /// The packet after which it rested the nth time, from 0.
    pub(crate) fn nth(&self, n: usize) -> Option<u64> {
        self.after.get(n).copied()
    }

    /// True if so many rests are noted completely.
    pub(crate) fn are_complete(noted: usize) -> bool {
        noted <= MOST
    }
}
