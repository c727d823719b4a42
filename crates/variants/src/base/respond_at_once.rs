//! The window is reduced the moment a loss is declared (RFC 5681 §3.1 and §3.2, RFC 6675 §5).

use reknit_tcp::facts::{Context, Trigger, Window};
use reknit_tcp::seams::{CongestionControl, LossResponse, Plugin, Reduction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::{Algorithm, Part};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What is multiplied by the factor of the congestion control.
    pub of: DecreaseOf,
}

/// What a reduction starts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecreaseOf {
    /// What `tcp.decrease_of` of the path says: FlightSize (RFC 5681 eq. 4) unless it is set.
    #[default]
    Tcp,
    /// cwnd (RFC 9438 §4.6 allows it). FlightSize counts what has arrived above a hole, which under persistent reordering
    /// is never small.
    Cwnd,
}

impl Algorithm for Config {
    const NAME: &'static str = "at-once";
    const SOURCE: &'static str = include_str!("respond_at_once.rs");
}

impl Part<dyn LossResponse> for Config {
    fn build(&self) -> Box<dyn LossResponse> {
        Box::new(AtOnce { of: self.of })
    }
}

#[derive(Debug)]
struct AtOnce {
    of: DecreaseOf,
}

impl Plugin for AtOnce {}

impl LossResponse for AtOnce {
    fn respond(
        &mut self,
        cx: &Context<'_>,
        reduction: &Reduction,
        congestion: &mut dyn CongestionControl,
    ) -> Option<Window> {
        let mut reduction = *reduction;
        if self.of == DecreaseOf::Cwnd {
            reduction.flight_size = cx.snd.cwnd;
        }
        let ssthresh = congestion.ssthresh(cx, &reduction).max(cx.snd.smss * 2);
        let cwnd = match reduction.trigger {
            Trigger::Timeout => cx.snd.smss, // the loss window of RFC 5681 §3.1
            Trigger::FastRetransmit | Trigger::Probe => ssthresh,
            // Its floor of two segments must not open a window of one (RFC 3168 §6.1.2).
            Trigger::Ecn => ssthresh.min(cx.snd.cwnd),
        };
        Some(Window { cwnd, ssthresh })
    }
}
