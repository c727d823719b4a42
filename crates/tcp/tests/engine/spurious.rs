//! A detector that declares reductions spurious without evidence.

use reknit_tcp::facts::{AckFacts, Context, Spurious, Trigger};
use reknit_tcp::scoreboard::{SegId, SendReason};
use reknit_tcp::seams::{Plugin, SpuriousDetector};
use reknit_testkit::variant;
use reknit_variants::{Composition, algorithms};

/// The variant `base` with a detector that gives this verdict as soon as anything else arrives: on every reduction, or
/// if the verdict is [`Spurious::LateTimeout`], on timeouts.
pub(crate) fn declared(base: &str, verdict: Spurious) -> Composition {
    let detector = algorithms::SpuriousDetector::unlisted("optimist", move || Box::new(Optimist(verdict)));
    Composition { spurious_detectors: vec![detector], ..variant(base) }
}

#[derive(Clone, Copy, Debug)]
struct Optimist(Spurious);

impl Plugin for Optimist {}

impl SpuriousDetector for Optimist {
    fn on_retransmitted(&mut self, _cx: &Context<'_>, _id: SegId, _cause: SendReason) {}

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Spurious> {
        let only_timeouts = self.0 == Spurious::LateTimeout;
        let snapshot = cx.snd.snapshot.filter(|snapshot| !only_timeouts || snapshot.trigger == Trigger::Timeout);
        (!ack.newly.is_empty() && snapshot.is_some()).then_some(self.0)
    }
}
