//! Proportional Rate Reduction (Mathis, Dukkipati, Cheng; RFC 6937, 2013).
//!
//! During recovery data is sent in proportion to what is delivered, so the ACK clock does not stop. If the pipe falls
//! below ssthresh, the slow-start reduction bound lets it grow back.

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seams::{FastRecovery, Plugin};
use reknit_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::{Algorithm, Part};
use crate::rule::{NEEDS_SACK, Rule};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How fast the pipe may grow back to ssthresh (RFC 6937 §3).
    pub bound: Bound,
}

/// The reduction bound of RFC 6937 §3.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Packet conservation.
    Conservative,
    /// One more segment per ACK.
    #[default]
    SlowStart,
}

impl Default for Config {
    fn default() -> Config {
        Config { bound: Bound::SlowStart }
    }
}

impl Algorithm for Config {
    const NAME: &'static str = "prr";
    const SOURCE: &'static str = include_str!("prr.rs");
    const RULES: &'static [Rule] = &[NEEDS_SACK];
}

impl Part<dyn FastRecovery> for Config {
    fn build(&self) -> Box<dyn FastRecovery> {
        Box::new(Prr { config: self.clone(), delivered: 0, out: 0, recover_fs: 1, send: 0 })
    }
}

#[derive(Debug)]
struct Prr {
    config: Config,
    /// `prr_delivered`: bytes delivered in this recovery.
    delivered: u64,
    /// `prr_out`: bytes sent in this recovery.
    out: u64,
    /// `RecoverFS`: FlightSize at the start of recovery.
    recover_fs: u64,
    /// `sndcnt`: bytes that may still be sent.
    send: u64,
}

impl Prr {
    /// RFC 6937 §3, the algorithm box.
    fn update(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        let delivered = ack.delivered.0;
        // `ssthresh` in the RFC: the window at the end of recovery.
        let (pipe, ssthresh) = (cx.board.pipe().bytes.0, cx.snd.recovery_window.0);
        self.delivered += delivered;
        self.send = if pipe > ssthresh {
            // Rounded up to whole segments, as if everything were counted in segments.
            let share = (self.delivered * ssthresh).div_ceil(self.recover_fs);
            share.next_multiple_of(cx.snd.smss.0).saturating_sub(self.out)
        } else {
            let conserved = self.delivered.saturating_sub(self.out);
            let limit = match self.config.bound {
                Bound::Conservative => conserved,
                Bound::SlowStart => conserved.max(delivered) + cx.snd.smss.0,
            };
            limit.min(ssthresh - pipe)
        };
    }
}

impl Plugin for Prr {}

impl FastRecovery for Prr {
    fn enter(&mut self, cx: &Context<'_>, ack: Option<&AckFacts<'_>>) -> Bytes {
        self.delivered = 0;
        self.out = 0;
        self.send = 0;
        self.recover_fs = cx.snd.flight_size().0.max(1);
        if let Some(ack) = ack {
            self.update(cx, ack);
        }
        cx.board.pipe().bytes + Bytes(self.send)
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        self.update(cx, ack);
        cx.board.pipe().bytes + Bytes(self.send)
    }

    fn on_sent(&mut self, bytes: Bytes) {
        self.out += bytes.0;
        self.send = self.send.saturating_sub(bytes.0);
    }

    fn allowance(&self, _cx: &Context<'_>) -> Bytes {
        Bytes(self.send)
    }

    fn exit(&mut self, cx: &Context<'_>) -> Bytes {
        cx.snd.recovery_window
    }
}
