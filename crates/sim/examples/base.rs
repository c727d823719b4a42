//! probe
use reknit_path::Profile;
use reknit_units::Duration;
use std::sync::Arc;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let overrides: Vec<String> = args[4..].to_vec();
    let profile = Arc::new(Profile::load("rr-tcp", &overrides).unwrap());
    let mut tcp = profile.tcp.clone();
    let tcp: reknit_tcp::Config = {
        tcp.remove("x");
        tcp.try_into().unwrap()
    };
    let v = (reknit_variants::find(&args[1]).unwrap().compose)();
    let seed = args[2].parse().unwrap();
    let secs: u64 = args[3].parse().unwrap();
    let s = reknit_sim::Scenario::bulk(profile, tcp, v, Duration::from_secs(secs), seed);
    let r = reknit_sim::run(&s);
    let f = &r.flows[0];
    println!(
        "{} seed {} packets {} sent {} rexmit {} spurious {} rto {} cuts {:?} false {} undo {} lost {} events {} p99 {:?} cwnd {}",
        args[1],
        seed,
        f.packets(),
        f.send.sent.total(),
        f.send.sent.retransmissions(),
        f.spurious_retransmissions,
        f.send.timeouts,
        f.send.cuts.total(),
        f.false_cuts,
        f.send.undos,
        f.lost,
        r.events,
        f.repair_p99,
        f.last.cwnd.0 / 960
    );
}
