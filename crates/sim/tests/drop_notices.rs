//! Routers that report drops, from the stage that drops to the sender that receives the report.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{Datagram, Scenario, TraceEvent, Tracer, run_traced, tcp_config};
use reknit_units::{Duration, Instant};

/// What the ACKs reported about their first gap: that it is due to drops, or to reordering.
#[derive(Default)]
struct Flags([u32; 2]);

impl Tracer for Flags {
    fn on_packet(&mut self, _now: Instant, event: TraceEvent, datagram: &Datagram) {
        if event == TraceEvent::Delivered
            && let Some(reordered) = datagram.segment.options.experiment.reordered
        {
            self.0[usize::from(reordered)] += 1;
        }
    }
}

/// A transfer over a link that loses one packet or delays it.
fn flags(variant: &str, stage: &str, drop_notices: bool) -> [u32; 2] {
    let toml = format!(
        "description = \"test\"\ndrop_notices = {drop_notices}\n\
         [[forward]]\nkind = \"link\"\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"1000 packets\"\n\
         [[forward]]\n{stage}\n[[reverse]]\nkind = \"link\"\ndelay = \"10 ms\"\n"
    );
    let profile = Arc::new(Profile::parse("test", &toml).unwrap());
    let tcp = tcp_config(&profile).unwrap();
    let composition = (reknit_variants::find(variant).unwrap().compose)();
    let scenario = Scenario::bulk(profile, tcp, composition, Duration::from_millis(400), 1);
    run_traced(&scenario, Flags::default()).1.0
}

const LOSS: &str = "kind = \"loss\"\npackets = [40]";
const DELAY: &str = "kind = \"displace\"\npositions = 5\nevery = 60";

#[test]
fn a_gap_is_due_to_drops_if_routers_say_so() {
    let [drops, reordering] = flags("rn", LOSS, true);
    assert!(drops > 0 && reordering == 0, "{drops} {reordering}");
    let [drops, reordering] = flags("rn", LOSS, false);
    assert!(drops == 0 && reordering > 0, "{drops} {reordering}");
    let [drops, reordering] = flags("rn", DELAY, true);
    assert!(drops == 0 && reordering > 0, "{drops} {reordering}");
}

#[test]
fn an_end_that_did_not_ask_for_notices_gets_none() {
    assert_eq!(flags("sack", LOSS, true), [0, 0]);
}
