//! Proportional rate reduction as implemented in Linux (Mathis, Cardwell, Cheng, Dukkipati, RFC 9937, 2025), counting
//! in segments.
//!
//! **Rules.** They apply to each ACK in recovery. `DeliveredData` is in segments and includes the duplicates that a
//! DSACK reports.
//! - 1: if pipe exceeds ssthresh, data is sent in proportion to what is delivered. The ratio is ssthresh to cwnd before
//!   the reduction (`RecoverFS` in the RFC is FlightSize; Linux divides by cwnd).
//! - 2: otherwise as much is sent as was delivered, up to ssthresh, and one segment more if SND.UNA advances and this
//!   ACK marks nothing lost (`SafeACK`).
//! - 3: at least one segment is sent until the fast retransmit has been sent.
//! - 4: cwnd is pipe plus the amount to send. An ACK that delivers nothing does not change it.
//! - 5: at the end of recovery cwnd is ssthresh, and the ACK that ends recovery lets it grow.

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seams::{FastRecovery, FastRecoveryTraits, Plugin};
use reknit_units::{Bytes, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cubic::delivered;
use crate::algorithm::Algorithm;
use crate::requirement::{NEEDS_SACK, Requirement};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxPrrConfig {
    /// Rule 2 asks for `SafeACK`. If not, it sends one segment more on every ACK, as Linux before 4.3 did.
    pub safe_ack: bool,
}

impl Default for LinuxPrrConfig {
    fn default() -> LinuxPrrConfig {
        LinuxPrrConfig { safe_ack: true }
    }
}

impl Algorithm<dyn FastRecovery> for LinuxPrrConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn FastRecovery> {
        let asks = self.safe_ack;
        Box::new(Prr { asks, delivered: 0, out: Bytes::ZERO, prior_cwnd: 1, lost_so_far: Bytes::ZERO })
    }
}

#[derive(Clone, Debug)]
struct Prr {
    /// Rule 2 asks for `SafeACK`.
    asks: bool,
    /// `prr_delivered`, in segments.
    delivered: u64,
    /// `prr_out`, in bytes.
    out: Bytes,
    /// cwnd before the reduction, in segments.
    prior_cwnd: u64,
    /// Bytes marked lost since the connection began, at the last ACK.
    lost_so_far: Bytes,
}

impl Prr {
    /// Rules 1 to 4: cwnd after an ACK of `delivered` segments.
    fn cwnd(&mut self, cx: &Context<'_>, delivered: Segments, safe: bool) -> Bytes {
        if delivered == Segments::ZERO {
            return cx.snd.cwnd;
        }
        let smss = cx.snd.smss.0;
        let delivered = u64::from(delivered.0);
        let (pipe, out) = (cx.board.pipe().bytes, self.out.0.div_ceil(smss));
        let ssthresh = cx.snd.recovery_window.0 / smss;
        let in_flight = pipe.0.div_ceil(smss);
        self.delivered += delivered;
        let send = if in_flight > ssthresh {
            (ssthresh * self.delivered).div_ceil(self.prior_cwnd).saturating_sub(out)
        } else {
            let conserved = self.delivered.saturating_sub(out).max(delivered);
            (conserved + u64::from(safe || !self.asks)).min(ssthresh - in_flight)
        };
        pipe + Bytes(send.max(u64::from(out == 0)) * smss)
    }
}

impl Plugin for Prr {}

impl FastRecovery for Prr {
    fn traits(&self) -> FastRecoveryTraits {
        FastRecoveryTraits { grows_on_exit: true, ..FastRecoveryTraits::default() }
    }

    fn enter(&mut self, cx: &Context<'_>, ack: Option<&AckFacts<'_>>) -> Bytes {
        let before = cx.snd.snapshot.map_or(cx.snd.recovery_window, |snapshot| snapshot.cwnd);
        self.prior_cwnd = (before.0 / cx.snd.smss.0).max(1);
        self.delivered = 0;
        self.out = Bytes::ZERO;
        self.lost_so_far = cx.board.lost_so_far();
        self.cwnd(cx, ack.map_or(Segments(1), |ack| delivered(cx, ack)), false)
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        let lost_before = std::mem::replace(&mut self.lost_so_far, cx.board.lost_so_far());
        let safe = ack.advances() && self.lost_so_far == lost_before;
        self.cwnd(cx, delivered(cx, ack), safe)
    }

    fn on_sent(&mut self, bytes: Bytes) {
        self.out += bytes;
    }

    fn allowance(&self, cx: &Context<'_>) -> Bytes {
        cx.snd.cwnd - cx.board.pipe().bytes
    }

    fn exit(&mut self, cx: &Context<'_>) -> Bytes {
        cx.snd.recovery_window
    }
}
