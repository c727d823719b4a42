//! Proportional Rate Reduction (Mathis, Cardwell, Cheng, Dukkipati, RFC 9937, 2025).
//!
//! During recovery data is sent in proportion to what is delivered, so the ACK clock does not stop. If the pipe falls
//! below ssthresh, as much is sent as was delivered, and a segment more on each ACK that shows good progress
//! (`SafeACK`). At least one segment is sent when recovery begins.
//!
//! `restarts_after_outage`: if hardly anything of a window arrives, the path was down. A queue that overflows lets packets
//! through at the rate of its link. So the window was not too large for the path, but there are too few ACKs to send by: at one
//! segment more per ACK, it would take several round trips to fill the reduced window again. It is filled at once instead, unless
//! no ACK arrived at all before everything was marked lost.
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
    /// If hardly anything of a window of more than ten segments has arrived, the pipe grows back to ssthresh at once (not in
    /// RFC 9937). Best with `spreads_bursts` of `limited_transmit`, which sends it over a round trip.
    pub restarts_after_outage: bool,
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
        PrrConfig { bound: Bound::SafeAck, restarts_after_outage: false }
    }
}

impl Algorithm<dyn FastRecovery> for PrrConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn FastRecovery> {
        Box::new(Prr {
            config: self.clone(),
            delivered: 0,
            out: 0,
            recover_fs: 1,
            may_restart: false,
            after_outage: false,
            lost_so_far: Bytes::ZERO,
        })
    }
}

/// A short queue may drop a whole window that is no larger than this.
const OUTAGE_SEGMENTS: u64 = 10;

#[derive(Clone, Debug)]
struct Prr {
    config: PrrConfig,
    /// `prr_delivered`: bytes delivered in this recovery.
    delivered: u64,
    /// `prr_out`: bytes sent in this recovery.
    out: u64,
    /// `RecoverFS`: what was in flight before the ACK that began recovery.
    recover_fs: u64,
    /// An ACK began this recovery. Otherwise the window has collapsed, as after a timeout.
    may_restart: bool,
    /// Hardly anything of the window has arrived in this recovery.
    after_outage: bool,
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
            self.after_outage |= self.may_restart && self.shows_outage(pipe, smss);
            let limit = match self.config.bound {
                _ if self.after_outage => ssthresh,
                Bound::Conservative => conserved,
                Bound::SlowStart => conserved.max(delivered) + smss,
                Bound::SafeAck => conserved.max(delivered) + if safe { smss } else { 0 },
            };
            limit.min(ssthresh - pipe)
        };
        Bytes(pipe + if self.out == 0 { send.max(smss) } else { send })
    }

    /// Most of what was in flight is lost, and hardly anything has been delivered in this recovery.
    fn shows_outage(&self, pipe: u64, smss: u64) -> bool {
        let window = self.recover_fs;
        window > OUTAGE_SEGMENTS * smss && pipe < window / 4 && self.delivered < window / 8
    }
}

impl Plugin for Prr {}

impl FastRecovery for Prr {
    /// RFC 9937 §6.1. What was SACKed before recovery will not count as delivered, so it does not count as in flight.
    fn enter(&mut self, cx: &Context<'_>, ack: Option<&AckFacts<'_>>) -> Bytes {
        let delivered = ack.map_or(0, |ack| ack.delivered.0);
        self.delivered = 0;
        self.out = 0;
        self.may_restart = self.config.restarts_after_outage && ack.is_some();
        self.after_outage = false;
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

#[cfg(test)]
mod tests {
    use reknit_tcp::facts::SendState;
    use reknit_tcp::scoreboard::Scoreboard;
    use reknit_tcp::seq::Offset;
    use reknit_units::Instant;

    use super::*;
    use crate::base::given;

    /// cwnd in segments when recovery begins with `outstanding` segments, of which an ACK has just delivered `delivered`, and all
    /// others are lost. No ACK has arrived if that is zero. The reduced window has 70.
    fn cwnd(config: &PrrConfig, outstanding: u64, delivered: u64) -> u64 {
        let snd = given::state();
        let of = |segments: u64| snd.smss * segments;
        let (snd_una, snd_nxt) = (Offset(1), Offset(1) + of(outstanding - delivered));
        let snd = SendState { snd_una, snd_nxt, recovery_window: of(70), ..given::state() };
        let (config_of_tcp, board) = (reknit_tcp::Config::default(), Scoreboard::default());
        let cx = Context { now: Instant::ZERO, config: &config_of_tcp, snd: &snd, board: &board };
        let ack = AckFacts { delivered: of(delivered), ..given::ack() };
        let ack = (delivered > 0).then_some(&ack);
        Algorithm::<dyn FastRecovery>::build(config).enter(&cx, ack).0 / snd.smss.0
    }

    #[test]
    fn after_an_outage_the_reduced_window_is_filled_at_once() {
        let restarts = PrrConfig { restarts_after_outage: true, ..PrrConfig::default() };
        assert_eq!(cwnd(&PrrConfig::default(), 100, 1), 1);
        assert_eq!(cwnd(&restarts, 100, 1), 70);
        assert_eq!(cwnd(&restarts, 100, 20), 20, "a queue that overflows lets packets through");
        assert_eq!(cwnd(&restarts, 10, 1), 1, "a short queue may have dropped a small window");
        assert_eq!(cwnd(&restarts, 100, 0), 1, "as after a timeout");
    }
}
