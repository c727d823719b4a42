//! Packets that are not what comes next in their connection: files that are not sorted or contain packets twice, the other side of a
//! firewall that changes sequence numbers, and another connection between the same ports of which the SYN was not captured. The
//! first step of `Stream::on_packet`.

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::handshake::Handshake;
use super::log::{FindingSink, Log};
use super::{SILENCE, Stream};
use crate::packet::{Flags, Packet};

/// Packets from several processors or interfaces may be captured in the wrong order within this time.
const DISORDER: Duration = Duration::from_millis(50);

/// Packets of one connection that are left out.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Strays {
    /// They have nothing new, and earlier times than the packets before.
    pub(crate) repeated: u64,
    /// Neither of their numbers belongs to the connection.
    pub(crate) foreign: u64,
    /// The time of the last packet that counts, when a packet was left out for its time.
    past_of: Option<Instant>,
}

impl Strays {
    /// Those of another connection too.
    pub(crate) fn add(&mut self, other: &Strays) {
        self.repeated += other.repeated;
        self.foreign += other.foreign;
    }
}

impl Stream {
    /// Packets that were left out because they are not what comes next.
    pub(crate) fn strays(&self) -> Option<&Strays> {
        self.strays.as_deref()
    }

    /// True if a packet that is not later than the one before has nothing new: the file is not sorted, or contains it twice. If the
    /// clock was set back, packets go on.
    pub(super) fn repeats_past(&mut self, end: usize, packet: &Packet, now: Instant) -> bool {
        let is_past_of = |strays: &Strays| strays.past_of == Some(self.last);
        let is_past = self.last.since(now) > DISORDER || self.strays().is_some_and(is_past_of);
        is_past && self.has_nothing_new(end, packet)
    }

    #[cold]
    fn has_nothing_new(&mut self, end: usize, packet: &Packet) -> bool {
        let segment = &packet.segment;
        let is_known = self.directions[end].has_passed(segment)
            && (!segment.flags.has(Flags::ACK) || self.directions[1 - end].has_acknowledged(segment.ack));
        if is_known {
            let strays = self.strays.get_or_insert_default();
            strays.repeated += 1;
            strays.past_of = Some(self.last);
        }
        is_known
    }

    /// True if neither number of a packet belongs to this connection: it is left out, unless another connection begins with it.
    #[cold]
    pub(super) fn is_foreign(&mut self, end: usize, packet: &Packet, now: Instant, log: &mut Log) -> bool {
        let segment = &packet.segment;
        let flags = segment.flags;
        if !flags.has(Flags::ACK) || flags.has(Flags::RST) || !self.directions[1 - end].is_far(segment.ack) {
            return false;
        }
        // A firewall that changes the numbers passes packets on at once.
        let begins = now.since(self.last) > SILENCE || flags.has(Flags::SYN) && self.is_closing;
        if begins && self.strays().is_none_or(|strays| strays.foreign == 0) {
            self.begin_again(end, packet, log);
            return false;
        }
        self.strays.get_or_insert_default().foreign += 1;
        true
    }

    /// Another connection between the same ports begins with this packet.
    fn begin_again(&mut self, end: usize, packet: &Packet, log: &mut Log) {
        let (mss, seqs) = (self.mss(), [packet.segment.seq, packet.segment.ack]);
        for (of, seq) in [end, 1 - end].into_iter().zip(seqs) {
            let mut out = FindingSink { stream: self.number, end: of as u8, now: self.last, log };
            self.directions[of].begin_again(seq, self.is_reset, mss[of], &mut out);
            self.release(of, log);
        }
        (self.is_closing, self.is_reset) = (false, false);
        (self.scales, self.handshake, self.echoes) = (None, Handshake::default(), Default::default());
        self.copies = Default::default();
    }
}
