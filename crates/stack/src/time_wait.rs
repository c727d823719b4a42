//! TIME-WAIT without a connection: answers to old segments (RFC 9293 §3.10.7.4), and new connections on the same flow (RFC
//! 6191).

use reknit_tcp::segment::{Flags, Options, Segment, Timestamps};
use reknit_tcp::{Config, TimeWait};
use reknit_units::{Duration, Instant};
use reknit_wire::Decoded;

use crate::flow::Flow;
use crate::stack::{Stack, Transmit};
use crate::table::Slot;

impl Stack {
    pub(crate) fn on_segment_in_time_wait(&mut self, now: Instant, index: u32, flow: Flow, arrived: &Decoded<'_>) {
        let Slot::TimeWait(waiting) = self.table.slot(index) else { return };
        let (segment, above) = (&arrived.segment, waiting.state.snd_nxt);
        if segment.flags.has(Flags::RST) {
            return; // RFC 1337 §3
        }
        if segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) && may_reuse(&waiting.state, segment) {
            if self.listener_at(flow.local).is_some() {
                self.counters.time_wait_reused += 1;
                self.remove(index);
                self.on_stray(now, flow, arrived, Some(above));
            }
            return;
        }
        let is_last_fin = segment.flags.has(Flags::FIN) && segment.seq.plus(segment.seq_len()) == waiting.state.rcv_nxt;
        if is_last_fin {
            // Our last acknowledgment was lost.
            waiting.state.expires = now + Config::default().time_wait;
        } else if segment.seq_len() == 0 && segment.seq == waiting.state.rcv_nxt {
            return; // an acknowledgment; answering it could go on for ever
        }
        let answer = answer(now, &waiting.state);
        let transmit = Transmit { endpoints: flow.endpoints(), hop_limit: waiting.hop_limit, segment: answer };
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
