//! TIME-WAIT without a connection: answers to old segments (RFC 9293 §3.10.7.4), and new connections on the same flow (RFC
//! 6191). The same for FIN-WAIT-2 once no application uses the connection: the peer's FIN begins TIME-WAIT, and its data is
//! refused. Called by `stack/input.rs` for segments of the flow: first [`may_reuse`] for a SYN, then `on_segment`.

use reknit_tcp::segment::{Flags, Options, Segment, Timestamps};
use reknit_tcp::{TimeWait, reset_for};
use reknit_units::{Duration, Instant};

use crate::answers::Transmit;
use crate::flow::FourTuple;

/// A connection in FIN-WAIT-2 or TIME-WAIT that no application uses any more.
#[derive(Debug)]
pub(crate) struct Waiting {
    flow: FourTuple,
    hop_limit: u8,
    state: TimeWait,
    /// It is in FIN-WAIT-2.
    expects_fin: bool,
}

/// How a segment is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Always: the peer's FIN has arrived, or has come again because our acknowledgment was lost. TIME-WAIT starts.
    Fin(Transmit),
    /// Only within the limit of answers that any host can trigger.
    Limited(Transmit),
    /// With a RST: the peer has sent data that nobody will read. The connection ends.
    Reset(Transmit),
    /// Not at all: the peer has reset the connection, which ends.
    End,
}

impl Waiting {
    pub(crate) fn new(flow: FourTuple, hop_limit: u8, state: TimeWait, expects_fin: bool) -> Waiting {
        Waiting { flow, hop_limit, state, expects_fin }
    }

    /// True if the peer's FIN has not arrived.
    pub(crate) fn expects_fin(&self) -> bool {
        self.expects_fin
    }

    pub(crate) fn flow(&self) -> &FourTuple {
        &self.flow
    }

    pub(crate) fn state(&self) -> &TimeWait {
        &self.state
    }

    /// A segment of the connection has arrived.
    pub(crate) fn on_segment(&mut self, now: Instant, segment: &Segment) -> Option<Answer> {
        if segment.flags.has(Flags::RST) {
            let ends = self.expects_fin && segment.seq == self.state.rcv_nxt; // in TIME-WAIT: RFC 1337 §3
            return ends.then_some(Answer::End);
        }
        let end = segment.seq.plus(segment.seq_len());
        let is_fin = segment.flags.has(Flags::FIN);
        if self.expects_fin && self.is_new(segment) {
            if !is_fin || end != self.state.rcv_nxt.plus(1) {
                return Some(Answer::Reset(self.transmit(reset_for(segment))));
            }
            (self.expects_fin, self.state.rcv_nxt) = (false, end);
        } else if segment.seq_len() == 0 && segment.seq == self.state.rcv_nxt {
            return None; // an acknowledgment; answering it could go on for ever
        }
        let is_last_fin = is_fin && end == self.state.rcv_nxt && !self.expects_fin;
        if is_last_fin {
            self.state.expires = now + self.state.duration;
        }
        let transmit = self.transmit(acknowledgment(now, &self.state));
        Some(if is_last_fin { Answer::Fin(transmit) } else { Answer::Limited(transmit) })
    }

    /// True if `segment` brings what comes next: data, or the peer's FIN.
    fn is_new(&self, segment: &Segment) -> bool {
        let next = self.state.rcv_nxt;
        let is_acceptable = segment.flags.has(Flags::ACK) && !self.state.snd_nxt.before(segment.ack);
        is_acceptable
            && !segment.flags.has(Flags::SYN)
            && !next.before(segment.seq)
            && next.before(segment.seq.plus(segment.seq_len()))
    }

    fn transmit(&self, segment: Segment) -> Transmit {
        Transmit { endpoints: self.flow.endpoints(), hop_limit: self.hop_limit, segment }
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
