//! What applications do.

use std::num::NonZeroU32;

use reknit_path::Variate;
use reknit_units::{Bytes, Duration};

/// What the applications at the two ends of a flow do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Workload {
    /// As much as the connection takes, to the end of the run.
    Bulk,
    /// This much, then it closes.
    Transfer(Bytes),
    /// One after the other, over as many connections as that takes.
    Transactions(Transactions),
}

/// Requests and responses, or files that are sent unasked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transactions {
    /// Bytes that the receiver of data asks with, and for which it opens the connection. None: the sender of data opens
    /// it, and sends unasked.
    pub request: Bytes,
    /// Bytes of data; at least one.
    pub response: Bytes,
    /// From the end of one to the beginning of the next.
    pub think: Variate,
    /// How many share a connection before the next one opens. None: there is only one connection.
    pub per_connection: Option<NonZeroU32>,
    /// How many there are. None: they go on to the end of the run.
    pub count: Option<u64>,
}

impl Transactions {
    /// Files of this size, without pauses, each over a connection of its own.
    pub const fn files(size: Bytes) -> Transactions {
        Transactions {
            request: Bytes::ZERO,
            response: size,
            think: Variate::Constant(Duration::ZERO),
            per_connection: Some(NonZeroU32::MIN),
            count: None,
        }
    }
}

impl Workload {
    /// The transactions that it consists of; a bulk transfer is none, since it never ends.
    pub(crate) fn transactions(&self) -> Option<Transactions> {
        match *self {
            Workload::Bulk => None,
            Workload::Transfer(size) => Some(Transactions { count: Some(1), ..Transactions::files(size) }),
            Workload::Transactions(transactions) => Some(transactions),
        }
    }
}
