//! Proportional Rate Reduction (Mathis, Cardwell, Cheng, Dukkipati, RFC 9937, 2025).
//!
//! During recovery data is sent in proportion to what is delivered, so the ACK clock does not stop. If the pipe falls
//! below ssthresh, as much is sent as was delivered, and a segment more on each ACK that shows good progress
//! (`SafeACK`). At least one segment is sent when recovery begins.
//!
//! RFC 6937, which it replaces, has the same rules with one fixed bound, and sends nothing on entry if nothing was
//! delivered.

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seams::{FastRecovery, Plugin};
use reknit_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::requirement::{NEEDS_SACK, Requirement};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrrConfig {
    /// How fast the pipe may grow back to ssthresh (RFC 9937 §6.2).
    pub bound: Bound,
}

/// The reduction bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Packet conservation (PRR-CRB of RFC 6937).
    Conservative,
    /// One more segment per ACK (PRR-SSRB of RFC 6937).
    SlowStart,
    /// One more segment per ACK that advances `SND.UNA` and shows no further loss (RFC 9937).
    #[default]
    SafeAck,
}

impl Default for PrrConfig {
    fn default() -> PrrConfig {
        PrrConfig { bound: Bound::SafeAck }
    }
}

impl Algorithm<dyn FastRecovery> for PrrConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn FastRecovery> {
        Box::new(Prr { config: self.clone(), delivered: 0, out: 0, recover_fs: 1, lost_so_far: Bytes::ZERO })
    }
}

#[derive(Clone, Debug)]
struct Prr {
    config: PrrConfig,
    /// `prr_delivered`: bytes delivered in this recovery.
    delivered: u64,
    /// `prr_out`: bytes sent in this recovery.
    out: u64,
    /// `RecoverFS`: what was in flight before the ACK that began recovery.
    recover_fs: u64,
    /// Bytes marked lost since the connection began, at the last ACK.
    lost_so_far: Bytes,
}

impl Prr {
    /// RFC 9937 §6.2: cwnd after an ACK that delivers `delivered` bytes.
    fn cwnd(&mut self, cx: &Context<'_>, delivered: u64, safe: bool) -> Bytes {
        // `ssthresh` in the RFC: the window at the end of recovery.
        let (pipe, ssthresh) = (cx.board.pipe().bytes.0, cx.snd.recovery_window.0);
        let smss = cx.snd.smss.0;
        self.delivered += delivered;
        let send = if pipe > ssthresh {
            // Rounded up to whole segments, as if everything were counted in segments.
            let share = (self.delivered * ssthresh).div_ceil(self.recover_fs);
            share.next_multiple_of(smss).saturating_sub(self.out)
        } else {
            let conserved = self.delivered.saturating_sub(self.out);
            let limit = match self.config.bound {
                Bound::Conservative => conserved,
                Bound::SlowStart => conserved.max(delivered) + smss,
                Bound::SafeAck => conserved.max(delivered) + if safe { smss } else { 0 },
            };
            limit.min(ssthresh - pipe)
        };
        Bytes(pipe + if self.out == 0 { send.max(smss) } else { send })
    }
}

impl Plugin for Prr {}

impl FastRecovery for Prr {
    /// RFC 9937 §6.1. What was SACKed before recovery will not count as delivered, so it does not count as in flight.
    fn enter(&mut self, cx: &Context<'_>, ack: Option<&AckFacts<'_>>) -> Bytes {
        let delivered = ack.map_or(0, |ack| ack.delivered.0);
        self.delivered = 0;
        self.out = 0;
        self.recover_fs = ((cx.snd.flight_size() - cx.board.sacked().bytes).0 + delivered).max(1);
        self.lost_so_far = cx.board.lost_so_far();
        self.cwnd(cx, delivered, false)
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        let lost_before = std::mem::replace(&mut self.lost_so_far, cx.board.lost_so_far());
        if ack.delivered == Bytes::ZERO {
            return cx.snd.cwnd;
        }
        self.cwnd(cx, ack.delivered.0, ack.advances() && self.lost_so_far == lost_before)
    }

    fn on_sent(&mut self, bytes: Bytes) {
        self.out += bytes.0;
    }

    fn allowance(&self, cx: &Context<'_>) -> Bytes {
        cx.snd.cwnd - cx.board.pipe().bytes
    }

    fn exit(&mut self, cx: &Context<'_>) -> Bytes {
        cx.snd.recovery_window
    }
}
