//! The workloads of applications.

use std::num::NonZeroU32;

use reknit_path::Variate;
use reknit_units::{Bytes, Duration};

/// What the applications at the two ends of a flow transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Workload {
    /// As much as the connection accepts, until the end of the run.
    Bulk,
    /// This amount of data, then the connection closes.
    Transfer(Bytes),
    /// A transfer, and this amount of data from the receiver, which starts to send when the first data arrives.
    Exchange {
        /// What the sender of data sends.
        size: Bytes,
        /// What the receiver of data sends.
        back: Bytes,
    },
    /// One transaction after the other, on as many connections as needed.
    Transactions(Transactions),
}

/// Requests and responses, or files without requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transactions {
    /// Bytes of the request of the receiver of data, which also opens the connection. Zero if there are no requests;
    /// the sender of data then opens the connection.
    pub request: Bytes,
    /// Bytes of data; at least one.
    pub response: Bytes,
    /// Time from the end of one transaction to the beginning of the next.
    pub think: Variate,
    /// Transactions per connection. None if there is only one connection.
    pub per_connection: Option<NonZeroU32>,
    /// The number of transactions. None if they continue until the end of the run.
    pub count: Option<u64>,
}

impl Transactions {
    /// Files of this size back to back, each on a new connection.
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
    /// The workload as transactions; none for a bulk transfer, which never ends.
    pub(crate) fn transactions(&self) -> Option<Transactions> {
        match *self {
            Workload::Bulk => None,
            Workload::Transfer(size) | Workload::Exchange { size, .. } => {
                Some(Transactions { count: Some(1), ..Transactions::files(size) })
            }
            Workload::Transactions(transactions) => Some(transactions),
        }
    }
}

/// True if a transaction may have this size.
pub(crate) fn is_possible(size: Bytes) -> bool {
    size > Bytes::ZERO && size <= Bytes(1 << 50)
}
