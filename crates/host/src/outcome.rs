//! What a live transfer has shown.

use reknit_tcp::Info;
use reknit_tcp::stats::{ReceiveStats, SendStats};
use reknit_units::{Bytes, Duration};

use crate::kernel_end::KernelCounters;
use crate::punctuality::Punctuality;
use crate::workload::Tally;

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// All of its data arrived, and both ends closed.
    Finished,
    /// It had no end of its own, and its time was over.
    Stopped,
    /// Its time was over before its data had arrived.
    Unfinished,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Bytes that arrived in order.
    pub delivered: Bytes,
    /// From the opening to the last byte, or to the end of its time.
    pub elapsed: Duration,
    /// What the sender's application wrote; empty if the transfer was stopped.
    pub sent: Tally,
    /// What the receiver's application read; empty if the transfer was stopped.
    pub received: Tally,
    /// Data segments that the sender sent.
    pub segments: u64,
    /// Of these, sent again.
    pub retransmissions: u64,
    /// Data segments that arrived although everything in them had arrived, copies by the network apart.
    pub spurious_retransmissions: u64,
    /// RST segments, both ways.
    pub resets: u64,
    /// FIN segments that arrived, from the sender and from the receiver.
    pub fins: [u64; 2],
    /// What the sender counted, if it was our engine.
    pub engine: Option<SendStats>,
    /// The sender's variables at the end, if it was our engine; else the receiver's, if that was.
    pub info: Option<Info>,
    /// What the receiver counted, if it was our engine.
    pub receive: Option<ReceiveStats>,
    /// What the sender's kernel counted, if it was one.
    pub kernel: Option<KernelCounters>,
    /// What the receiver's kernel counted, if it was one.
    pub receiver_kernel: Option<KernelCounters>,
    /// Whether the machine kept up.
    pub punctuality: Punctuality,
}

impl Outcome {
    /// Bytes in order per second, in bits.
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

    /// Data segments that the receiver discarded for their older timestamps (PAWS).
    pub fn paws_discards(&self) -> u64 {
        match (&self.receive, &self.receiver_kernel) {
            (Some(engine), _) => engine.paws_discards,
            // Pure ACKs count as well, but those of a receiver's peer are rare: it sends data.
            (None, Some(kernel)) => kernel.get("PAWSEstab"),
            (None, None) => 0,
        }
    }
}
