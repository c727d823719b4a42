//! Proof that a reduction was spurious: the segment that was blamed arrived after all.

use reknit_tcp::facts::{AckFacts, Context, Snapshot, Spurious};
use reknit_tcp::scoreboard::{Cause, SegId};
use reknit_tcp::seams::{Plugin, SpuriousDetector};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::{Algorithm, Part};

/// Parameters: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl Algorithm for Config {
    const NAME: &'static str = "original-arrived";
    const SOURCE: &'static str = include_str!("undo.rs");
}

impl Part<dyn SpuriousDetector> for Config {
    fn build(&self) -> Box<dyn SpuriousDetector> {
        Box::new(OriginalArrived { min_rtt: Duration::MAX })
    }
}

#[derive(Debug)]
struct OriginalArrived {
    min_rtt: Duration,
}

impl OriginalArrived {
    /// DSACKs say that all copies of the blamed segment arrived.
    fn is_reported(ack: &AckFacts<'_>, blamed: SegId) -> bool {
        let reported = ack.dsack.iter().flat_map(|dsack| dsack.segments);
        reported.filter(|segment| segment.id == blamed).any(|segment| segment.reports + 1 == segment.transmissions)
    }

    /// It is acknowledged sooner after its only retransmission than any round trip takes.
    fn is_too_soon(&self, cx: &Context<'_>, ack: &AckFacts<'_>, blamed: SegId) -> bool {
        let arrived = ack.newly.contains(&blamed).then(|| cx.board.get(blamed)).flatten();
        arrived.is_some_and(|record| record.transmissions == 2 && cx.now.since(record.last_sent) < self.min_rtt)
    }
}

impl Plugin for OriginalArrived {}

impl SpuriousDetector for OriginalArrived {
    fn on_retransmitted(&mut self, _cx: &Context<'_>, _id: SegId, _cause: Cause) {}

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Spurious> {
        self.min_rtt = self.min_rtt.min(ack.rtt.unwrap_or(Duration::MAX));
        let Snapshot { hole, .. } = *cx.snd.snapshot.as_ref()?;
        let arrived = OriginalArrived::is_reported(ack, hole) || self.is_too_soon(cx, ack, hole);
        arrived.then_some(Spurious::FastRetransmit)
    }
}
