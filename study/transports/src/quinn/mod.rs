//! quinn (`quinn-proto`): QUIC with CUBIC.

mod calls;
mod cipher;
#[expect(clippy::duplicate_mod, reason = "quinn and its fork have the same functions with different types")]
#[path = "../quic/end.rs"]
mod end;
mod judge;
mod undo;

use std::sync::Arc;

use quinn_proto as proto;
use quinn_proto::TransportConfig;
use reknit_sim::Transport;

use crate::configured::transport;

/// No packet threshold. (`seam.py` uses `u32::MAX` for something else.)
const NONE: u32 = u32::MAX - 1;

/// quinn as it comes, and with loss detectors that wait for late packets.
pub fn all() -> Vec<Arc<dyn Transport>> {
    let about = |settings: &str| format!("quinn-proto {}: CUBIC, {settings}", env!("VERSION_QUINN_PROTO"));
    vec![
        transport("quinn", about("default loss detection"), |opening| end::open(opening, TransportConfig::default())),
        transport("quinn-patient", about("no packet threshold, a time threshold of 4 round-trip times"), |opening| {
            let mut config = TransportConfig::default();
            config.packet_threshold(NONE).time_threshold(4.0);
            end::open(opening, config)
        }),
        transport("quinn-judge", about("as quinn-patient; the controller decides what is lost"), |opening| {
            let mut config = TransportConfig::default();
            config.packet_threshold(NONE).time_threshold(4.0);
            config.congestion_controller_factory(Arc::new(judge::JudgingConfig::default()));
            end::open(opening, config)
        }),
        #[cfg(feature = "seam")]
        transport("quinn-recovery", about("the loss detector `reknit-recovery`"), |opening| {
            let mut config = TransportConfig::default();
            config.packet_threshold(u32::MAX).congestion_controller_factory(Arc::new(undo::UndoingConfig::default()));
            end::open(opening, config)
        }),
    ]
}
