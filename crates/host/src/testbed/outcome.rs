//! The result of a live transfer.

use reknit_tcp::Info;
use reknit_tcp::stats::{ReceiveStats, SendStats};
use reknit_units::{Bytes, Duration};

use super::kernel_end::KernelCounters;
use super::workload::PayloadDigest;
use crate::punctuality::TimingAccuracy;

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// All of its data arrived, and both ends closed.
    Finished,
    /// The transfer was unlimited, and its duration was over.
    Stopped,
    /// The time was over before all data had arrived.
    Unfinished,
}

/// The result of a transfer.
#[derive(Clone, Debug)]
pub struct TransferResult {
    /// How it ended.
    pub ending: StopReason,
    /// Bytes that arrived in order.
    pub delivered: Bytes,
    /// From the opening of the connection to the last byte, or to the end of the time.
    pub elapsed: Duration,
    /// What the sender's application wrote; empty if the transfer was stopped.
    pub sent: PayloadDigest,
    /// What the receiver's application read; empty if the transfer was stopped.
    pub received: PayloadDigest,
    /// Data segments that the sender sent.
    pub segments: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Data segments that arrived after all of their data had arrived, except copies made by the network.
    pub spurious_retransmissions: u64,
    /// RST segments, both ways.
    pub resets: u64,
    /// FIN segments that arrived, from the sender and from the receiver.
    pub fins: [u64; 2],
    /// Counters of the sender, if it was the engine.
    pub engine: Option<SendStats>,
    /// The sender's variables at the end if it was the engine, else the receiver's if that was.
    pub info: Option<Info>,
    /// Counters of the receiver, if it was the engine.
    pub receive: Option<ReceiveStats>,
    /// Counters of the sender's kernel, if it was a kernel.
    pub kernel: Option<KernelCounters>,
    /// Counters of the receiver's kernel, if it was a kernel.
    pub receiver_kernel: Option<KernelCounters>,
    /// Whether the machine was fast enough.
    pub punctuality: TimingAccuracy,
}

impl TransferResult {
    /// Bytes that arrived in order per second, in bit/s.
    pub fn goodput(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.delivered.0 as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// Expiries of the sender's retransmission timer.
    pub fn timeouts(&self) -> u64 {
        match (&self.engine, &self.kernel) {
            (Some(engine), _) => engine.timeouts,
            (None, Some(kernel)) => kernel.get("TCPTimeouts"),
            (None, None) => 0,
        }
    }

    /// Data segments that the receiver discarded because of their older timestamps (PAWS).
    pub fn paws_discards(&self) -> u64 {
        match (&self.receive, &self.receiver_kernel) {
            (Some(engine), _) => engine.paws_discards,
            // This includes pure ACKs, but a sender of data rarely sends those.
            (None, Some(kernel)) => kernel.get("PAWSEstab"),
            (None, None) => 0,
        }
    }
}
