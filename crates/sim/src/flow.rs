//! One connection of a simulation: its two ends, their applications, and what really happened on the path.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use reknit_path::stages::DropReason;
use reknit_tcp::facts::Trigger;
use reknit_tcp::seams::{Memory, ShownName};
use reknit_tcp::{Config, Connection, Identity, Segment, SeqNum, State};
use reknit_units::Instant;

use crate::application::Application;
use crate::liar::MisbehavingReceiver;
use crate::oracle::Oracle;
use crate::roles::{PerRole, Role};
use crate::scenario::FlowSpec;
use crate::tally::Tally;
use crate::trace::Datagram;

#[derive(Debug)]
pub(crate) struct Flow {
    /// Unlike its slot in the simulation, the id is never reused.
    pub(crate) id: u32,
    /// The client of the connection.
    pub(crate) client: u32,
    /// The sender of data, then the receiver.
    pub(crate) ends: PerRole<Connection>,
    pub(crate) application: Application,
    /// Its transactions are complete and an end has closed; this has been handled.
    pub(crate) done: bool,
    truth: Truth,
    /// Misbehavior of the receiver, applied between its TCP and the network; none for honest receivers.
    liar: Option<Box<MisbehavingReceiver>>,
    /// Losses that must still be reported to a sender with an oracle; none for other senders.
    oracle: Option<Box<Oracle>>,
}

/// What only the simulator knows.
#[derive(Debug, Default)]
struct Truth {
    /// The number of lost copies of the segment at this position.
    lost: BTreeMap<u64, u32>,
    /// Segments that wait at the receiver for earlier ones: position and time of arrival, lowest position first.
    waiting: VecDeque<(u64, Instant)>,
    cuts_seen: u64,
}

/// The numbers of a connection and its client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowIds {
    pub(crate) id: u32,
    pub(crate) client: u32,
    pub(crate) seed: u64,
}

impl Flow {
    pub(crate) fn new(
        now: Instant,
        ids: FlowIds,
        spec: &FlowSpec,
        configs: &PerRole<Arc<Config>>,
        application: Application,
    ) -> Flow {
        // Any numbers will do: no decision depends on them.
        let mixed = (ids.seed ^ u64::from(ids.id) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let identity = |salt: u64| Identity { isn: SeqNum((mixed >> salt) as u32), timestamp_offset: mixed as u32 };
        let opener = Application::opener(&spec.workload);
        let end = |end: Role, plugins, salt| {
            let open = if end == opener { Connection::connect } else { Connection::listen };
            let mut connection = open(now, configs[end].clone(), plugins, identity(salt));
            connection.read_at_once();
            connection.set_secret(mixed);
            connection
        };
        let ends = PerRole {
            sender: end(Role::Sender, spec.sender.build(), 16),
            receiver: end(Role::Receiver, spec.receiver.build(), 32),
        };
        Flow {
            id: ids.id,
            client: ids.client,
            oracle: ends.sender.needs_loss_reports().then(Box::default),
            liar: spec.lie.map(|lie| Box::new(MisbehavingReceiver::new(lie, ids.seed, ids.id))),
            ends,
            application,
            done: false,
            truth: Truth::default(),
        }
    }

    /// `datagram` has arrived. True if it completes a transaction.
    pub(crate) fn deliver(&mut self, now: Instant, datagram: &Datagram, tally: &mut Tally) -> bool {
        match datagram.from {
            Role::Sender => self.deliver_data(now, datagram, tally),
            Role::Receiver => {
                self.ends.sender.on_segment(now, &datagram.segment);
                self.application.on_arrival_at_sender(&mut self.ends.sender);
                self.check_cuts(tally);
                false
            }
        }
    }

    fn deliver_data(&mut self, now: Instant, datagram: &Datagram, tally: &mut Tally) -> bool {
        if self.liar.is_some() {
            return self.deliver_to_liar(now, datagram, tally);
        }
        let receiver = &mut self.ends.receiver;
        let (before, stats) = (receiver.received(), *receiver.receive_stats());
        receiver.on_segment(now, &datagram.segment);
        let after = receiver.received();
        let position = || self.ends.sender.position_sent(datagram.segment.seq);
        let is_known = || position().is_some_and(|position| position + u64::from(datagram.segment.len) <= before);
        // PAWS discards late originals, also if their retransmissions have arrived.
        let discarded = receiver.receive_stats().paws_discards > stats.paws_discards && is_known();
        let duplicate = discarded || receiver.receive_stats().duplicates > stats.duplicates;
        tally.spurious_retransmissions += u64::from(duplicate && !datagram.copy);
        if after > before {
            tally.delivered.0 += after - before;
            let complete = self.application.on_arrival_at_receiver(receiver);
            self.truth.on_advance(now, after, tally);
            return complete;
        }
        if !duplicate && let Some(position) = position() {
            self.truth.on_gap(now, position);
        }
        false
    }

    /// Data arrives at a misbehaving receiver: every new byte counts as delivered, in order or not.
    fn deliver_to_liar(&mut self, now: Instant, datagram: &Datagram, tally: &mut Tally) -> bool {
        let Some(liar) = &mut self.liar else { return false };
        let PerRole { sender, receiver } = &mut self.ends;
        let mut arrivals = Vec::new();
        tally.delivered.0 += liar.on_arrival(&datagram.segment, sender.snd_nxt(), &mut arrivals);
        let before = (receiver.received(), receiver.receive_stats().duplicates);
        for segment in &arrivals {
            receiver.on_segment(now, segment);
        }
        let duplicate = receiver.receive_stats().duplicates > before.1;
        tally.spurious_retransmissions += u64::from(duplicate && arrivals.len() == 1 && !datagram.copy);
        receiver.received() > before.0 && self.application.on_arrival_at_receiver(receiver)
    }

    /// The segments that are sent instead of `segment` of `end`: only a misbehaving receiver changes it.
    pub(crate) fn tamper(&mut self, now: Instant, end: Role, segment: &Segment) -> Vec<Segment> {
        let mut sent = Vec::new();
        match &mut self.liar {
            Some(liar) if end == Role::Receiver => {
                let info = self.ends.sender.info(now);
                let in_flight = info.flight_size.0 / info.smss.0;
                liar.on_departure(segment, self.ends.sender.snd_nxt(), in_flight as u32, &mut sent);
            }
            _ => sent.push(*segment),
        }
        sent
    }

    /// True if its receiver misbehaves.
    pub(crate) fn has_liar(&self) -> bool {
        self.liar.is_some()
    }

    /// The timers of `end` are due.
    pub(crate) fn on_timer(&mut self, now: Instant, end: Role, tally: &mut Tally) {
        self.ends[end].on_timer(now);
        if end == Role::Sender {
            self.check_cuts(tally);
        }
    }

    /// Reports to the sender the losses that it would know by now.
    pub(crate) fn tell(&mut self, now: Instant) {
        while let Some(notice) = self.oracle.as_mut().and_then(|oracle| oracle.pop(now)) {
            self.ends.sender.report_loss(now, notice.segment, notice.number);
        }
    }

    /// The path lost `datagram`. Returns when to tell the sender, if it has an oracle.
    pub(crate) fn on_lost(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        why: DropReason,
        tally: &mut Tally,
    ) -> Option<Instant> {
        if datagram.copy {
            return None;
        }
        if datagram.from != Role::Sender || datagram.segment.len == 0 {
            tally.lost_acks += 1;
            return None;
        }
        tally.lost += 1;
        tally.queue_drops += u64::from(why.is_in_queue());
        let sender = &self.ends.sender;
        let told_at = self.oracle.as_mut().and_then(|oracle| oracle.on_lost(now, datagram, sender));
        if let Some(position) = sender.position_sent(datagram.segment.seq) {
            *self.truth.lost.entry(position).or_default() += 1;
        }
        let acknowledged = sender.acknowledged();
        while let Some(entry) = self.truth.lost.first_entry().filter(|entry| *entry.key() < acknowledged) {
            entry.remove();
        }
        told_at
    }

    /// If the sender has reduced its window, checks whether the segment that it marked lost really was.
    fn check_cuts(&mut self, tally: &mut Tally) {
        let stats = self.ends.sender.send_stats();
        let total = stats.cuts.total();
        if total > self.truth.cuts_seen {
            self.truth.cuts_seen = total;
            if let Some(cut) = stats.last_cut {
                let lost = self.truth.lost.get(&cut.position).copied().unwrap_or(0);
                let is_false = lost < u32::from(cut.transmissions);
                tally.false_cuts += u64::from(is_false);
                tally.false_fast_retransmits += u64::from(is_false && cut.trigger == Trigger::FastRetransmit);
            }
        }
    }

    /// Resets the counts at the end of the warm-up.
    pub(crate) fn restart_counts(&mut self) {
        self.ends.iter_mut().for_each(|(_, end)| end.restart_counts());
        self.truth.cuts_seen = 0;
    }

    /// True if its transactions are complete. The last ACK may be lost, and the receiver's TIME-WAIT does not matter.
    pub(crate) fn is_done(&self) -> bool {
        self.application.is_over() && self.ends.iter().any(|(_, end)| end.state() >= State::TimeWait)
    }

    /// Calls `show` for each number that plug-ins show.
    pub(crate) fn show(&self, show: &mut dyn FnMut(ShownName, f64)) {
        for (end, connection) in self.ends.iter() {
            end.show(connection, show);
        }
    }

    /// Each end starts with what its earlier connections to the other host have kept.
    pub(crate) fn recall(&mut self, now: Instant, memories: &PerRole<Memory>) {
        for (end, connection) in self.ends.iter_mut() {
            connection.recall(now, &memories[end]);
        }
    }

    /// Each end keeps something for its next connection to the other host.
    pub(crate) fn remember(&self, memories: &mut PerRole<Memory>) {
        for (end, connection) in self.ends.iter() {
            connection.remember(&mut memories[end]);
        }
    }

    /// True if `end` has aborted before the other end had all data.
    pub(crate) fn has_failed(&self, end: Role) -> bool {
        !self.application.is_over() && self.ends[end].state() == State::Closed
    }

    /// False if an event at `end` has certainly not ended anything, which is nearly always so.
    pub(crate) fn may_be_over(&self, end: Role) -> bool {
        self.application.is_over() || self.ends[end].state() == State::Closed
    }

    /// True if neither end has anything more to send.
    pub(crate) fn is_over(&self) -> bool {
        self.application.is_over() && self.ends.iter().all(|(_, end)| end.state() >= State::TimeWait)
    }
}

impl Truth {
    /// Data has arrived at `position`, above a gap.
    fn on_gap(&mut self, now: Instant, position: u64) {
        let is_last = self.waiting.back().is_none_or(|(last, _)| *last < position);
        let at =
            if is_last { self.waiting.len() } else { self.waiting.partition_point(|(other, _)| *other < position) };
        match self.waiting.get_mut(at) {
            Some((same, since)) if *same == position => *since = now,
            _ => self.waiting.insert(at, (position, now)),
        }
    }

    /// Data has arrived in order, up to `received`.
    fn on_advance(&mut self, now: Instant, received: u64, tally: &mut Tally) {
        tally.waits.note_in_order();
        while let Some((_, since)) = self.waiting.pop_front_if(|(position, _)| *position < received) {
            tally.waits.note(now.since(since));
        }
    }
}
