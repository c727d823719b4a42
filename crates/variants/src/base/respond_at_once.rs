//! The window is reduced the moment a loss is declared (RFC 5681 §3.1 and §3.2, RFC 6675 §5).

use reknit_tcp::facts::{Context, Trigger, Window};
use reknit_tcp::seams::{CongestionControl, LossResponse, Reduction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::composition::{Algorithm, Part};

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl Algorithm for Config {
    const NAME: &'static str = "at-once";
    const SOURCE: &'static str = include_str!("respond_at_once.rs");
}

impl Part<dyn LossResponse> for Config {
    fn build(&self) -> Box<dyn LossResponse> {
        Box::new(AtOnce)
    }
}

#[derive(Debug)]
struct AtOnce;

impl LossResponse for AtOnce {
    fn respond(
        &mut self,
        cx: &Context<'_>,
        reduction: &Reduction,
        congestion: &mut dyn CongestionControl,
    ) -> Option<Window> {
        let ssthresh = congestion.ssthresh(cx, reduction).max(cx.snd.smss * 2);
        let cwnd = match reduction.trigger {
            Trigger::Timeout => cx.snd.smss, // the loss window of RFC 5681 §3.1
            Trigger::FastRetransmit | Trigger::Probe => ssthresh,
            // Its floor of two segments must not open a window of one (RFC 3168 §6.1.2).
            Trigger::Ecn => ssthresh.min(cx.snd.cwnd),
        };
        Some(Window { cwnd, ssthresh })
    }
}
