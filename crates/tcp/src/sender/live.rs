//! Changes while a connection is open: options, plug-ins, the size of segments, and memory.

use std::hint::black_box;
use std::sync::Arc;

use reknit_units::{Bytes, Instant};

use super::Sender;
use crate::buffers::Buffers;
use crate::config::Config;
use crate::facts::SendState;
use crate::seams::Plugins;

impl Sender {
    pub(crate) fn reconfigure(&mut self, config: Arc<Config>) {
        self.config = config;
        self.state.cwnd = self.cap(self.state.cwnd);
        self.update_rto();
    }

    /// Full segments carry `smss` from now on. Larger ones that are outstanding are sent again in pieces.
    pub(crate) fn limit_segment_size(&mut self, now: Instant, smss: Bytes) {
        self.state.smss = smss;
        self.size_probe = None;
        let mut next = self.board.next_unsacked(self.board.first());
        while let Some(id) = next {
            // A full segment may also carry a FIN.
            if self.board.get(id).is_some_and(|record| Bytes(u64::from(record.len)) > smss + Bytes(1)) {
                self.forced |= self.board.mark_lost(id);
            }
            next = self.board.next_unsacked(id.next());
        }
        self.transmit(now);
    }

    /// Nothing is outstanding: the new plug-ins see the connection from here on.
    pub(crate) fn replace_plugins(&mut self, now: Instant, plugins: Plugins) {
        let Plugins { mut sender, without_sack, .. } = plugins;
        if let Some(without_sack) = without_sack.filter(|_| !self.state.sack) {
            without_sack(&mut sender);
        }
        let fresh = Sender::new(self.config.clone(), sender, None, now);
        (self.by_model, self.sampler, self.pacing, self.pacer) =
            (fresh.by_model, fresh.sampler, fresh.pacing, fresh.pacer);
        (self.reaction, self.ledger, self.postponed) = (fresh.reaction, fresh.ledger, fresh.postponed);
        (self.gate, self.backoff, self.last_expiry) = (fresh.gate, 0, None);
        self.plugins = fresh.plugins;
        if self.plugins.send_buffers.is_empty() {
            self.queued = self.written;
        }
        self.state.phase = fresh.state.phase;
        self.state.snapshot = None;
        self.state.frozen_until = fresh.state.frozen_until;
        self.state.rto = fresh.state.rto;
        if let Some(srtt) = self.state.srtt {
            self.plugins.rto_estimator.on_sample(&self.config, srtt);
        }
        self.update_rto();
        self.state.dup_thresh = self.plugins.dup_thresh.dup_thresh(&self.context(now));
        self.holds_new_data = false;
    }

    /// Reads a field of each cache line that almost every segment needs.
    pub(crate) fn read_ahead(&self) {
        let SendState { srtt, snd_una, ssthresh, rto, .. } = &self.state;
        black_box(&(*srtt, *snd_una, *ssthresh, *rto));
        self.board.read_ahead();
        black_box(&(self.postponed.is_some(), self.min_rtt, self.ledger.is_empty()));
        black_box(&(self.newly.len(), self.outbox.len()));
        black_box(&(self.stats.reordering.len(), self.stats.sent.new, self.stats.undos, self.stats.acks));
        black_box(&(self.persist.expires, self.last_expiry.is_some(), self.queued, self.round_end));
        black_box(&(self.has_ack_left(), self.last_progress, self.wl, self.closing));
    }

    /// Reads what these lead to: the first record, and the state of the algorithms that almost every segment asks.
    pub(crate) fn read_algorithms_ahead(&self) {
        self.board.read_first_ahead();
        let plugins = &self.plugins;
        plugins.loss_detector.read_ahead();
        plugins.rto_estimator.read_ahead();
        plugins.undo_limit.read_ahead();
        plugins.congestion_control.read_ahead();
        plugins.dup_thresh.read_ahead();
        for detector in &plugins.spurious_detectors {
            detector.read_ahead();
        }
        for buffer in &plugins.send_buffers {
            buffer.read_ahead();
        }
    }

    pub(crate) fn lend(&mut self, buffers: &mut Buffers) {
        buffers.ids.lend(&mut self.newly);
        buffers.outgoing.lend(&mut self.outbox);
        self.board.lend(&mut buffers.records);
    }

    pub(crate) fn give_back(&mut self, buffers: &mut Buffers) {
        self.newly.clear();
        buffers.ids.take_back(&mut self.newly);
        if self.outbox.is_empty() {
            buffers.outgoing.take_back(&mut self.outbox);
        }
        self.board.give_back(&mut buffers.records);
    }

    pub(crate) fn holds_memory(&self) -> bool {
        let own = self.last_blocks.capacity() + self.newly.capacity() + self.outbox.capacity();
        own > 0 || self.board.holds_memory() || self.sampler.as_ref().is_some_and(|sampler| sampler.holds_memory())
    }

    pub(crate) fn shrink(&mut self, now: Instant) {
        if !self.board.is_empty() {
            return;
        }
        self.board.shrink(now);
        self.last_blocks = Vec::new();
        self.newly = Vec::new();
        self.outbox = Vec::new();
        if let Some(sampler) = &mut self.sampler {
            sampler.shrink();
        }
    }
}
