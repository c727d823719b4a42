//! The window is reduced the moment a loss is declared (RFC 5681 §3.1 and §3.2, RFC 6675 §5).

use reknit_tcp::facts::{Context, Trigger};
use reknit_tcp::seams::{CongestionControl, LossResponse, Window};
use reknit_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::composition::Part;

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {}

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
        trigger: Trigger,
        flight_size: Bytes,
        congestion: &mut dyn CongestionControl,
    ) -> Option<Window> {
        let ssthresh = congestion.ssthresh(cx, trigger, flight_size).max(cx.snd.smss * 2);
        let cwnd = match trigger {
            Trigger::Timeout => cx.snd.smss, // the loss window of RFC 5681 §3.1
            Trigger::FastRetransmit | Trigger::Probe | Trigger::Ecn => ssthresh,
        };
        Some(Window { cwnd, ssthresh })
    }
}
