//! The applications at the two ends of a connection: which end writes when, and which end closes.

use reknit_tcp::Connection;
use reknit_units::Bytes;

use crate::roles::{PerRole, Role};
use crate::workload::{Transactions, Workload};

/// More than any run can send.
const WITHOUT_END: Bytes = Bytes(1 << 60);

#[derive(Debug)]
pub(crate) struct Application {
    request: Bytes,
    response: Bytes,
    /// What the receiver of data sends as soon as the first data arrives; zero if it has nothing to send.
    back: Bytes,
    /// Transactions that may still begin on this connection; none if there is no limit.
    left: Option<u32>,
    /// Bytes of requests, including the current one.
    requested: u64,
    /// Bytes of responses, including the current one.
    promised: u64,
    state: TransactionState,
}

/// The progress of the current transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TransactionState {
    /// No transaction is in progress.
    Idle,
    /// The request is being sent.
    Asking,
    /// The response is being sent.
    Answering,
    /// It never ends.
    Bulk,
}

impl Application {
    pub(crate) fn new(workload: &Workload, left: Option<u32>) -> Application {
        let transactions = workload.transactions();
        let (request, response) = transactions.map_or((Bytes::ZERO, WITHOUT_END), |t| (t.request, t.response));
        let back = if let Workload::Exchange { back, .. } = workload { *back } else { Bytes::ZERO };
        let state = if transactions.is_some() { TransactionState::Idle } else { TransactionState::Bulk };
        Application { request, response, back, left, requested: 0, promised: 0, state }
    }

    /// The end that opens the connection and writes first.
    pub(crate) fn opener(workload: &Workload) -> Role {
        match workload.transactions() {
            Some(Transactions { request, .. }) if request > Bytes::ZERO => Role::Receiver,
            _ => Role::Sender,
        }
    }

    /// Begins a transaction.
    pub(crate) fn begin(&mut self, ends: &mut PerRole<Connection>) {
        if self.state == TransactionState::Bulk {
            ends.sender.write(self.response);
            return;
        }
        self.left = self.left.map(|left| left.saturating_sub(1));
        if self.request > Bytes::ZERO {
            self.state = TransactionState::Asking;
            self.requested += self.request.0;
            ends.receiver.write(self.request);
        } else {
            self.answer(&mut ends.sender);
        }
    }

    /// Something has arrived at the sender of data, possibly a complete request.
    pub(crate) fn on_arrival_at_sender(&mut self, sender: &mut Connection) {
        if self.state == TransactionState::Asking && sender.received() >= self.requested {
            self.answer(sender);
        }
    }

    /// Data has arrived at the receiver. True if it completes the transaction.
    pub(crate) fn on_arrival_at_receiver(&mut self, receiver: &mut Connection) -> bool {
        if self.back > Bytes::ZERO && receiver.received() > 0 {
            receiver.write(std::mem::take(&mut self.back));
        }
        if self.state != TransactionState::Answering || receiver.received() < self.promised {
            return false;
        }
        self.state = TransactionState::Idle;
        if self.is_over() {
            receiver.close();
        }
        true
    }

    /// True while a transaction is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.state != TransactionState::Idle
    }

    /// True if all transactions of this connection are complete.
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
