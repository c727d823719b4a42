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
#[cfg(feature = "seam")]
use reknit_sim::Ends;
#[cfg(any(test, feature = "seam"))]
use reknit_sim::Opening;
use reknit_sim::Transport;

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

/// The number of a flow in its scenario. The simulator multiplies it, and the seed of the run, by an odd constant; this
/// multiplies by the inverse.
#[cfg(any(test, feature = "seam"))]
fn flow(opening: &Opening) -> u64 {
    opening.seed.wrapping_mul(0xf1de_83e1_9937_733d) >> 32
}

/// All flows of a run have the same transport. This one is two transports: the first two flows have `reknit-recovery`.
#[cfg(feature = "seam")]
fn beside(opening: &Opening) -> Ends {
    if flow(opening) < 2 { recovery::<16>(opening) } else { end::open(opening, TransportConfig::default()) }
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
        transport("quinn-recovery-beside", about("`reknit-recovery` in the first two flows only"), beside),
        #[cfg(feature = "seam")]
        transport("quinn-recovery-1", about("`reknit-recovery`, which waits for 1 round trip at most"), recovery::<1>),
        #[cfg(feature = "seam")]
        transport("quinn-recovery-2", about("`reknit-recovery`, which waits for 2 round trips at most"), recovery::<2>),
        #[cfg(feature = "seam")]
        transport("quinn-recovery-4", about("`reknit-recovery`, which waits for 4 round trips at most"), recovery::<4>),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use reknit_path::Profile;
    use reknit_sim::{FlowSpec, Scenario, run, tcp_config};
    use reknit_units::Duration;
    use reknit_variants::Composition;

    use super::*;

    static FLOWS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

    fn open(opening: &Opening) -> reknit_sim::Ends {
        FLOWS.lock().unwrap().push(flow(opening));
        end::open(opening, TransportConfig::default())
    }

    #[test]
    fn the_number_of_a_flow_is_found() {
        let profile = Arc::new(Profile::load("clean", &[]).expect("a built-in path"));
        let tcp = tcp_config(&profile).expect("the path's options are valid");
        let spec = FlowSpec::bulk(Arc::default());
        for seed in [1, 2, u32::MAX.into()] {
            let one =
                Scenario::bulk(profile.clone(), tcp.clone(), Composition::default(), Duration::from_secs(1), seed);
            let transport = Some(transport("recording", String::new(), open));
            run(&Scenario { flows: vec![spec.clone(); 4], transport, ..one });
            assert_eq!(FLOWS.lock().unwrap().drain(..).collect::<Vec<_>>(), [0, 1, 2, 3], "seed {seed}");
        }
    }
}
