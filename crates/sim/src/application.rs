//! The applications at the two ends of one connection: who writes when, and who closes.

use reknit_tcp::Connection;
use reknit_units::Bytes;

use crate::trace::End;
use crate::workload::{Transactions, Workload};

/// More than any run can send.
const WITHOUT_END: Bytes = Bytes(1 << 60);

#[derive(Debug)]
pub(crate) struct Application {
    request: Bytes,
    response: Bytes,
    /// Transactions that may still begin here; none: without limit.
    left: Option<u32>,
    /// Bytes of requests, up to the one under way.
    requested: u64,
    /// Bytes of responses, up to the one under way.
    promised: u64,
    state: TransactionState,
}

/// Where the transaction under way is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TransactionState {
    /// There is none.
    Idle,
    /// The request is on its way.
    Asking,
    /// The response is on its way.
    Answering,
    /// It has no end.
    Bulk,
}

impl Application {
    pub(crate) fn new(workload: &Workload, left: Option<u32>) -> Application {
        let transactions = workload.transactions();
        let (request, response) = transactions.map_or((Bytes::ZERO, WITHOUT_END), |t| (t.request, t.response));
        let state = if transactions.is_some() { TransactionState::Idle } else { TransactionState::Bulk };
        Application { request, response, left, requested: 0, promised: 0, state }
    }

    /// The end that writes first, and that opens the connection.
    pub(crate) fn opener(workload: &Workload) -> End {
        match workload.transactions() {
            Some(Transactions { request, .. }) if request > Bytes::ZERO => End::Receiver,
            _ => End::Sender,
        }
    }

    /// A transaction begins.
    pub(crate) fn begin(&mut self, ends: &mut [Connection; 2]) {
        if self.state == TransactionState::Bulk {
            ends[0].write(self.response);
            return;
        }
        self.left = self.left.map(|left| left.saturating_sub(1));
        if self.request > Bytes::ZERO {
            self.state = TransactionState::Asking;
            self.requested += self.request.0;
            ends[1].write(self.request);
        } else {
            self.answer(&mut ends[0]);
        }
    }

    /// Something has arrived at the sender of data: a request, perhaps.
    pub(crate) fn on_arrival_at_sender(&mut self, sender: &mut Connection) {
        if self.state == TransactionState::Asking && sender.received() >= self.requested {
            self.answer(sender);
        }
    }

    /// Data has arrived at the receiver: true if it completes the transaction.
    pub(crate) fn on_arrival_at_receiver(&mut self, receiver: &mut Connection) -> bool {
        if self.state != TransactionState::Answering || receiver.received() < self.promised {
            return false;
        }
        self.state = TransactionState::Idle;
        if self.is_over() {
            receiver.close();
        }
        true
    }

    /// A transaction is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.state != TransactionState::Idle
    }

    /// All that this connection was for is done.
    pub(crate) fn is_over(&self) -> bool {
        self.state == TransactionState::Idle && self.left == Some(0)
    }

    fn answer(&mut self, sender: &mut Connection) {
        self.state = TransactionState::Answering;
        self.promised += self.response.0;
        sender.write(self.response);
        if self.left == Some(0) {
            sender.close();
        }
    }
}
