//! Changes to an open connection: options, plug-ins, the segment size, and memory. Called by the connection's `live.rs`, outside
//! of the processing of a segment.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

use reknit_units::{Bytes, Instant};

use super::pacing::Pacer;
use super::recovery::LossRecovery;
use super::rtt::update_rto;
use super::undoable::UndoableReductions;
use super::{Outgoing, Sender, sampler, window_control};
use crate::config::Config;
use crate::facts::SendState;
use crate::pool::Pool;
use crate::prefetch::prefetch;
use crate::scoreboard::{SegId, SegmentRecord};
use crate::seams::Plugins;

/// Buffers that only a busy sender needs.
#[derive(Debug, Default)]
pub(crate) struct SenderBuffers {
    records: Pool<VecDeque<SegmentRecord>>,
    ids: Pool<Vec<SegId>>,
    outgoing: Pool<Vec<Outgoing>>,
}

impl Sender {
    pub(crate) fn reconfigure(&mut self, config: Arc<Config>) {
        self.config = config;
        self.state.reconfigure(&self.config);
        update_rto(&mut self.state, &*self.plugins.rto_estimator, &self.config);
    }

    /// Full segments carry `smss` from now on. Larger ones that are outstanding are sent again in pieces.
    pub(crate) fn limit_segment_size(&mut self, now: Instant, smss: Bytes) {
        self.state.set_smss(smss);
        self.size_probe.cancel();
        let mut next = self.board.next_unsacked(self.board.first());
        while let Some(id) = next {
            // A full segment may also carry a FIN.
            let is_longer = self.board.get(id).is_some_and(|record| Bytes(u64::from(record.len)) > smss + Bytes(1));
            if is_longer && self.board.mark_lost(id) {
                self.constraints.retransmit_at_once();
            }
            next = self.board.next_unsacked(id.next());
        }
        self.transmit(now);
    }

    /// Tries a segment with a payload of `smss`; `mss` is its size with options.
    pub(crate) fn probe_size(&mut self, mss: u16, smss: Bytes) {
        self.size_probe.try_size(mss, smss);
    }

    /// The size of the probe and whether it arrived, once that is known. If so, full segments have its size from now on.
    pub(crate) fn take_probe_result(&mut self) -> Option<(u16, bool)> {
        let result = self.size_probe.take_result(self.board.first())?;
        if result.has_arrived {
            self.state.set_smss(result.smss);
        }
        Some((result.mss, result.has_arrived))
    }

    /// One event sends at most so many segments. The rest follows in further events at the same time.
    pub(crate) fn limit_event(&mut self, most: u32) {
        self.backlog.set_most_to_send(most);
    }

    /// True if work is left for another event at the same time.
    pub(crate) fn has_backlog(&self) -> bool {
        self.backlog.deadline(self.board.reopens()).is_set()
    }

    /// No new data is sent until [`Sender::replace_plugins`].
    pub(crate) fn hold_new_data(&mut self) {
        self.constraints.hold_new_data();
    }

    /// The new plug-ins see the connection from here on. Called once nothing is outstanding.
    pub(crate) fn replace_plugins(&mut self, now: Instant, plugins: Plugins) {
        let Plugins { mut sender, without_sack, .. } = plugins;
        if let Some(without_sack) = without_sack.filter(|_| !self.state.sack) {
            without_sack(&mut sender);
        }
        self.traits = sender.traits();
        self.plugins = sender;
        self.state.forget_decisions(&self.config, window_control(self.traits.congestion_control));
        self.sampler = sampler(now, self.traits.congestion_control);
        self.pacer = Pacer::default();
        self.recovery = LossRecovery::new();
        self.undoable = UndoableReductions::default();
        self.timers.forget_timeouts();
        self.queue.queue_unlimited(&self.plugins.send_buffers);
        if let Some(srtt) = self.state.srtt {
            self.plugins.rto_estimator.on_sample(&self.config, srtt);
        }
        update_rto(&mut self.state, &*self.plugins.rto_estimator, &self.config);
        self.state.set_dup_thresh(self.plugins.dup_thresh.dup_thresh(&self.context(now)));
        self.constraints.resume_new_data();
    }

    /// Reads a field of each cache line that almost every segment needs.
    pub(crate) fn prefetch(&self) {
        let SendState { srtt, snd_una, ssthresh, rto, .. } = &*self.state;
        black_box(&(*srtt, *snd_una, *ssthresh, *rto));
        self.board.prefetch();
        black_box(&(self.recovery.postponed_until().is_some(), self.undoable.is_empty()));
        black_box(&(self.newly.len(), self.outbox.len()));
        black_box(&(self.stats.reordering.len(), self.stats.sent.new, self.stats.undos, self.stats.acks));
        black_box(&(self.queue.queued(), self.backlog.has_ack()));
        self.timers.prefetch();
        self.round_trips.prefetch();
        self.peer.prefetch();
    }

    /// Loads the first record and the state of the algorithms that almost every segment needs. Called after
    /// [`Sender::prefetch`].
    pub(crate) fn prefetch_plugins(&self) {
        self.board.read_first_ahead();
        let plugins = &self.plugins;
        prefetch(&*plugins.loss_detector);
        prefetch(&*plugins.rto_estimator);
        prefetch(&*plugins.undo_limit);
        prefetch(&*plugins.congestion_control);
        prefetch(&*plugins.dup_thresh);
        plugins.spurious_detectors.iter().for_each(|detector| prefetch(&**detector));
        plugins.send_buffers.iter().for_each(|buffer| prefetch(&**buffer));
    }

    pub(crate) fn borrow_buffers(&mut self, buffers: &mut SenderBuffers) {
        buffers.ids.lend(&mut self.newly);
        buffers.outgoing.lend(&mut self.outbox);
        self.board.borrow_records(&mut buffers.records);
    }

    pub(crate) fn return_buffers(&mut self, buffers: &mut SenderBuffers) {
        self.newly.clear();
        buffers.ids.reclaim(&mut self.newly);
        if self.outbox.is_empty() {
            buffers.outgoing.reclaim(&mut self.outbox);
        }
        self.board.return_records(&mut buffers.records);
    }

    pub(crate) fn memory(&self) -> usize {
        self.board.memory()
    }

    pub(crate) fn holds_memory(&self) -> bool {
        let own = self.newly.capacity() + self.outbox.capacity();
        own > 0
            || self.peer.holds_memory()
            || self.board.holds_memory()
            || self.sampler.as_ref().is_some_and(|sampler| sampler.holds_memory())
    }

    pub(crate) fn shrink(&mut self, now: Instant) {
        if !self.board.is_empty() {
            return;
        }
        self.board.shrink(now);
        self.peer.shrink();
        self.newly = Vec::new();
        self.outbox = Vec::new();
        if let Some(sampler) = &mut self.sampler {
            sampler.shrink();
        }
    }
}
