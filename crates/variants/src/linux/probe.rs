//! Tail loss probes of Linux (RFC 8985 §7): when one is sent, and what its ACK shows.

use reknit_tcp::facts::{AckFacts, Context, Phase};
use reknit_tcp::seams::Verdicts;
use reknit_tcp::seq::Offset;
use reknit_units::{Duration, Instant, Segments};

use super::ticks::expiry;

#[derive(Clone, Debug)]
pub(super) struct Probe {
    /// When the probe timeout expires.
    pto: Instant,
    /// SND.NXT when the probe was sent; `None` if no probe is outstanding.
    end_seq: Option<Offset>,
    is_retrans: bool,
}

impl Probe {
    pub(super) fn new() -> Probe {
        Probe { pto: Instant::NEVER, end_seq: None, is_retrans: false }
    }

    pub(super) fn pto(&self) -> Instant {
        self.pto
    }

    /// SND.NXT when the outstanding probe was sent.
    pub(super) fn end_seq(&self) -> Option<Offset> {
        self.end_seq
    }

    /// A probe is due after `timeout`, but not later than the retransmission timeout; and only while nothing is SACKed and
    /// the sender is not in recovery.
    pub(super) fn schedule(&mut self, cx: &Context<'_>, timeout: Duration) {
        self.pto = Instant::NEVER;
        let idle = cx.board.is_empty() || cx.snd.phase != Phase::Open || cx.board.sacked().segments > Segments::ZERO;
        if !cx.snd.sack || idle {
            return;
        }
        let rto = if cx.snd.rto_expires.is_set() { cx.snd.rto_expires } else { expiry(cx.now, cx.now + cx.snd.rto) };
        self.pto = expiry(cx.now, cx.now + timeout).min(rto);
    }

    pub(super) fn end(&mut self) {
        self.pto = Instant::NEVER;
        self.end_seq = None;
    }

    /// Sends a probe if one is due.
    pub(super) fn on_timer(&mut self, now: Instant, verdicts: &mut Verdicts) {
        if self.pto <= now {
            self.pto = Instant::NEVER;
            if self.end_seq.is_none() {
                verdicts.probe();
            }
        }
    }

    /// A probe was sent: `again` if it is a retransmission.
    pub(super) fn on_sent(&mut self, cx: &Context<'_>, again: bool) {
        self.end_seq = Some(cx.snd.snd_nxt);
        self.is_retrans = again;
    }

    /// RFC 8985 §7.4.2: what an ACK shows about the probe.
    pub(super) fn on_ack(&mut self, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        let Some(end_seq) = self.end_seq.filter(|end_seq| ack.ack >= *end_seq) else { return };
        let reported = ack.dsack.is_some_and(|dsack| dsack.right == end_seq);
        let silent = !ack.advances() && ack.newly.is_empty() && ack.dsack.is_none();
        let repaired = self.is_retrans && !reported && ack.ack > end_seq;
        if repaired {
            verdicts.probe_repaired_loss();
        }
        if repaired || !self.is_retrans || reported || silent {
            self.end_seq = None;
        }
    }
}
