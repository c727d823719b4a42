//! TIME-WAIT without a connection: answers to old segments (RFC 9293 §3.10.7.4), and new connections on the same flow (RFC
//! 6191).

use reknit_tcp::segment::{Flags, Options, Segment, Timestamps};
use reknit_tcp::{Config, SeqNum, TimeWait};
use reknit_units::{Duration, Instant};

use crate::flow::Flow;
use crate::stack::{Stack, Transmit};
use crate::table::Slot;

impl Stack {
    /// If the segment is the SYN of a new connection on the flow of one in TIME-WAIT (RFC 6191 §2), ends the old one, whose
    /// application may still hold its socket. Returns the number after which the new one's sequence numbers begin.
    pub(crate) fn end_for_syn(&mut self, index: u32, flow: &Flow, segment: &Segment) -> Option<SeqNum> {
        if !segment.flags.has(Flags::SYN) || segment.flags.has(Flags::ACK) {
            return None;
        }
        let old = match self.table.slot(index) {
            Slot::TimeWait(waiting) => waiting.state,
            Slot::Live(socket) => socket.stream.connection().time_wait()?,
            Slot::Vacant => return None,
        };
        if !may_reuse(&old, segment) || self.listener_at(flow.local).is_none() {
            return None;
        }
        self.counters.time_wait_reused += 1;
        match self.table.live(index) {
            Some(socket) => {
                socket.stream.connection_mut().end_time_wait();
                self.on_closed(index);
            }
            None => self.remove(index),
        }
        Some(old.snd_nxt)
    }

    pub(crate) fn on_segment_in_time_wait(&mut self, now: Instant, index: u32, segment: &Segment) {
        let Slot::TimeWait(waiting) = self.table.slot(index) else { return };
        if segment.flags.has(Flags::RST) {
            return; // RFC 1337 §3
        }
        let is_last_fin = segment.flags.has(Flags::FIN) && segment.seq.plus(segment.seq_len()) == waiting.state.rcv_nxt;
        if is_last_fin {
            // Our last acknowledgment was lost.
            waiting.state.expires = now + Config::default().time_wait;
        } else if segment.seq_len() == 0 && segment.seq == waiting.state.rcv_nxt {
            return; // an acknowledgment; answering it could go on for ever
        }
        let answer = answer(now, &waiting.state);
        let transmit = Transmit { endpoints: waiting.flow.endpoints(), hop_limit: waiting.hop_limit, segment: answer };
        if is_last_fin || self.resets.allows(now) {
            self.answer(transmit);
        }
    }
}

/// RFC 6191 §2: the SYN is of a new connection, and not an old duplicate.
fn may_reuse(old: &TimeWait, syn: &Segment) -> bool {
    let above = old.rcv_nxt.before(syn.seq);
    match (old.ts_recent, syn.options.timestamps) {
        (Some(recent), Some(timestamps)) if timestamps.val != recent => {
            timestamps.val.wrapping_sub(recent).cast_signed() > 0
        }
        _ => above,
    }
}

fn answer(now: Instant, state: &TimeWait) -> Segment {
    let clock = (now.as_nanos() / Duration::from_millis(1).as_nanos()) as u32;
    let timestamps = state.ts_recent.map(|ecr| Timestamps { val: clock.wrapping_add(state.timestamp_offset), ecr });
    Segment {
        seq: state.snd_nxt,
        ack: state.rcv_nxt,
        window: state.window,
        flags: Flags::ACK,
        options: Options { timestamps, ..Options::default() },
        ..Segment::default()
    }
}
