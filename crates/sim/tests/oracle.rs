//! The oracle: a sender that the simulator tells about each real loss, and about nothing else.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{FlowResult, Scenario, run, tcp_config};
use reknit_units::Duration;

fn transfer(variant: &str, stages: &str) -> FlowResult {
    let links = "[[forward]]\nkind = \"link\"\nname = \"bottleneck\"\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\n\
                 queue = \"100 packets\"\n[[reverse]]\nkind = \"link\"\ndelay = \"50 ms\"\n";
    let profile = Profile::parse("test", &format!("description = \"test\"\n{links}{stages}")).unwrap();
    let tcp = tcp_config(&profile).unwrap();
    let composition = (reknit_variants::find(variant).unwrap().compose)();
    run(&Scenario::bulk(Arc::new(profile), tcp, composition, Duration::from_secs(20), 1)).flows[0].clone()
}

const TWO_PATHS: &str = "[[forward]]\nkind = \"multipath\"\nchoice = \"random\"\n\
                         paths = [{ delay = \"0 ms\" }, { delay = \"150 ms\" }]\n";
const LOSS: &str = "[[forward]]\nkind = \"loss\"\nprobability = 0.001\n";

#[test]
fn reordering_costs_an_oracle_nothing() {
    for variant in ["oracle", "oracle-reno", "oracle-bbr", "oracle-bbr1"] {
        let flow = transfer(variant, TWO_PATHS);
        assert_eq!(flow.false_cuts, 0, "{variant}");
        assert_eq!(flow.spurious_retransmissions, 0, "{variant}");
        assert!(flow.goodput() > 8.5e6, "{variant}: {} bit/s", flow.goodput());
    }
}

#[test]
fn an_oracle_retransmits_every_loss_once_and_reduces_for_it() {
    let flow = transfer("oracle", &format!("{LOSS}{TWO_PATHS}"));
    let outstanding_at_the_end = 2;
    assert!(flow.lost > 10, "{} losses", flow.lost);
    assert!(flow.send.sent.retransmissions() <= flow.lost);
    assert!(flow.send.sent.retransmissions() + outstanding_at_the_end >= flow.lost);
    assert_eq!((flow.spurious_retransmissions, flow.send.timeouts, flow.false_cuts), (0, 0, 0));
    assert!(flow.send.cuts.total() > 5, "{} reductions", flow.send.cuts.total());
}

#[test]
fn lost_acknowledgments_do_not_stop_an_oracle() {
    let down = "[[reverse]]\nkind = \"outage\"\nprobability = 0.002\ndown = \"constant(300 ms)\"\n";
    let flow = transfer("oracle", &format!("{TWO_PATHS}{down}"));
    assert!(flow.lost_acks > 100, "{} ACKs lost", flow.lost_acks);
    assert!(flow.goodput() > 4e6, "{} bit/s", flow.goodput());
}
