//! The results of all connections of a flow that can be added up.

use reknit_tcp::stats::{ReceiveStats, SendStats};
use reknit_units::{Bytes, Duration};

use crate::result::{FlowResult, Unreported};
use crate::shown::PluginMetrics;
use crate::waits::Waits;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Bytes that arrived in order, from the beginning.
    pub(crate) delivered: Bytes,
    /// Of these, during the warm-up.
    pub(crate) uncounted: Bytes,
    /// Counters of connections that have ended.
    pub(crate) send: SendStats,
    pub(crate) receive: ReceiveStats,
    /// Data packets.
    pub(crate) lost: u64,
    /// Of these, by queues.
    pub(crate) queue_drops: u64,
    /// Other packets, both ways.
    pub(crate) lost_acks: u64,
    pub(crate) spurious_retransmissions: u64,
    pub(crate) false_cuts: u64,
    pub(crate) false_fast_retransmits: u64,
    pub(crate) waits: Waits,
    /// Of connections that have ended.
    pub(crate) shown: PluginMetrics,
}

impl Tally {
    /// Resets the counts at the end of the warm-up.
    pub(crate) fn restart(&mut self) {
        *self = Tally { delivered: self.delivered, uncounted: self.delivered, ..Tally::default() };
    }

    /// The result of a flow, without what is not counted here.
    pub(crate) fn into_result(mut self, group: u32, elapsed: Duration, smss: Bytes) -> FlowResult {
        FlowResult {
            group,
            delivered: self.delivered - self.uncounted,
            elapsed,
            completed: None,
            transactions: 0,
            send: self.send,
            receive: self.receive,
            spurious_retransmissions: self.spurious_retransmissions,
            false_cuts: self.false_cuts,
            false_fast_retransmits: self.false_fast_retransmits,
            lost: self.lost,
            queue_drops: self.queue_drops,
            lost_acks: self.lost_acks,
            wait_p50: self.waits.quantile(0.5),
            wait_p99: self.waits.quantile(0.99),
            smss,
            last: None,
            shown: self.shown,
            series: Vec::new(),
            unreported: Unreported::default(),
        }
    }
}
