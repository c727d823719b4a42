//! How Linux reduces the window after a loss.
//!
//! **Rules.**
//! - 1: after a fast retransmit, or a loss repaired by a probe, ssthresh is set by the congestion control, and recovery
//!   brings cwnd down to it (RFC 9937).
//! - 2: a timeout reduces ssthresh only if the same window has not been reduced before: not in fast recovery, and not
//!   when the timer expires again before anything new was acknowledged (RFC 5681 §3.1).
//! - 3: cwnd after a timeout is the remaining pipe plus one segment ([`super::frto`]).

use reknit_tcp::facts::{Context, Phase, Trigger, Window};
use reknit_tcp::seams::{CongestionControl, LossResponse, Plugin, Reduction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinuxReductionConfig {}

impl Algorithm<dyn LossResponse> for LinuxReductionConfig {
    fn build(&self) -> Box<dyn LossResponse> {
        Box::new(LinuxReduction)
    }
}

#[derive(Clone, Debug)]
struct LinuxReduction;

impl Plugin for LinuxReduction {}

impl LossResponse for LinuxReduction {
    fn respond(
        &mut self,
        cx: &Context<'_>,
        reduction: &Reduction,
        congestion: &mut dyn CongestionControl,
    ) -> Option<Window> {
        let in_recovery = cx.snd.phase == Phase::Recovery && cx.snd.snd_una < cx.snd.recover;
        match reduction.trigger {
            Trigger::Timeout if in_recovery => Some(cx.snd.window_with(cx.snd.smss)),
            Trigger::Timeout => Some(Window { cwnd: cx.snd.smss, ssthresh: congestion.ssthresh(cx, reduction) }),
            Trigger::FastRetransmit | Trigger::Probe => {
                let ssthresh = congestion.ssthresh(cx, reduction);
                Some(Window { cwnd: ssthresh, ssthresh })
            }
            // The minimum ssthresh of two segments must not raise a cwnd of one segment (RFC 3168 §6.1.2).
            Trigger::Ecn => {
                let ssthresh = congestion.ssthresh(cx, reduction);
                Some(Window { cwnd: ssthresh.min(cx.snd.cwnd), ssthresh })
            }
        }
    }
}
