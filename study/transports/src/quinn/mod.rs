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
#[cfg(feature = "seam")]
use reknit_sim::{Ends, Opening};

use crate::configured::transport;

/// No packet threshold.
const NONE: u32 = u32::MAX;

/// With `reknit-recovery`, which waits for at most `MAX_WAIT` smoothed round-trip times.
#[cfg(feature = "seam")]
fn recovery<const MAX_WAIT: u32>(opening: &Opening) -> Ends {
    let mut config = TransportConfig::default();
    config.loss_detection(proto::LossDetection::Recovery { max_wait: MAX_WAIT });
    config.congestion_controller_factory(Arc::new(undo::UndoingConfig::default()));
    end::open(opening, config)
}

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
        transport(
            "quinn-judge",
            about("as quinn-patient; an experiment: the controller decides what is lost"),
            |opening| {
                let mut config = TransportConfig::default();
                config.packet_threshold(NONE).time_threshold(4.0);
                config.congestion_controller_factory(Arc::new(judge::JudgingConfig::default()));
                end::open(opening, config)
            },
        ),
        #[cfg(feature = "seam")]
        transport("quinn-recovery", about("the loss detector `reknit-recovery`"), recovery::<16>),
        #[cfg(feature = "seam")]
        transport("quinn-recovery-4", about("`reknit-recovery`, which waits for 4 round trips at most"), recovery::<4>),
        #[cfg(feature = "seam")]
        transport("quinn-recovery-8", about("`reknit-recovery`, which waits for 8 round trips at most"), recovery::<8>),
        #[cfg(feature = "seam")]
        transport("quinn-recovery-any", about("`reknit-recovery`, which waits for any time"), recovery::<{ u32::MAX }>),
    ]
}
