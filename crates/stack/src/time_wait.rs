//! TIME-WAIT without a connection: answers to old segments (RFC 9293 §3.10.7.4), and new connections on the same flow (RFC
//! 6191). Called by `stack/input.rs` for segments of the flow: first [`may_reuse`] for a SYN, then `on_segment`.

use reknit_tcp::TimeWait;
use reknit_tcp::segment::{Flags, Options, Segment, Timestamps};
use reknit_units::{Duration, Instant};

use crate::answers::Transmit;
use crate::flow::FourTuple;

/// A connection in TIME-WAIT that no application uses any more.
#[derive(Debug)]
pub(crate) struct Waiting {
    flow: FourTuple,
    hop_limit: u8,
    state: TimeWait,
}

/// How an old segment is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Always: our last acknowledgment was lost. TIME-WAIT restarts.
    Again(Transmit),
    /// Only within the limit of answers that any host can trigger.
    Limited(Transmit),
}

impl Waiting {
    pub(crate) fn new(flow: FourTuple, hop_limit: u8, state: TimeWait) -> Waiting {
        Waiting { flow, hop_limit, state }
    }

    pub(crate) fn flow(&self) -> &FourTuple {
        &self.flow
    }

    pub(crate) fn state(&self) -> &TimeWait {
        &self.state
    }

    /// A segment of the old connection has arrived.
    pub(crate) fn on_segment(&mut self, now: Instant, segment: &Segment) -> Option<Answer> {
        if segment.flags.has(Flags::RST) {
            return None; // RFC 1337 §3
        }
        let is_last_fin = segment.flags.has(Flags::FIN) && segment.seq.plus(segment.seq_len()) == self.state.rcv_nxt;
        if is_last_fin {
            self.state.expires = now + self.state.duration;
        } else if segment.seq_len() == 0 && segment.seq == self.state.rcv_nxt {
            return None; // an acknowledgment; answering it could go on for ever
        }
        let segment = acknowledgment(now, &self.state);
        let transmit = Transmit { endpoints: self.flow.endpoints(), hop_limit: self.hop_limit, segment };
        Some(if is_last_fin { Answer::Again(transmit) } else { Answer::Limited(transmit) })
    }
}

/// RFC 6191 §2: `syn` opens a new connection on the flow of one in TIME-WAIT, and is not an old duplicate.
pub(crate) fn may_reuse(old: &TimeWait, syn: &Segment) -> bool {
    let above = old.rcv_nxt.before(syn.seq);
    match (old.ts_recent, syn.options.timestamps) {
        (Some(recent), Some(timestamps)) if timestamps.val != recent => {
            timestamps.val.wrapping_sub(recent).cast_signed() > 0
        }
        _ => above,
    }
}

fn acknowledgment(now: Instant, state: &TimeWait) -> Segment {
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
