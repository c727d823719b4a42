//! probe
use std::sync::atomic::AtomicBool;
use reknit_host::testbed::Payload;
use reknit_host::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let s = Spec {
        profile: reknit_path::Profile::load(&a[1], &[]).unwrap(),
        tcp: reknit_tcp::Config { min_rto: reknit_units::Duration::from_millis(200), ..Default::default() },
        sender: a[2].parse().unwrap(), receiver: a[3].parse().unwrap(),
        opener: if a[4] == "s" { Opener::Sender } else { Opener::Receiver },
        payload: if a[5] == "0" { Payload::Endless } else { Payload::Pattern(reknit_units::Bytes(a[5].parse().unwrap())) },
        duration: reknit_units::Duration::from_secs(a[6].parse().unwrap()),
        ipv6: a.len() > 7, seed: 1,
        capture_sender: Some("/tmp/s.pcapng".into()), capture_receiver: Some("/tmp/r.pcapng".into()),
    };
    match run(&s, &AtomicBool::new(false)) { Ok(o) => println!("{} {:.2} Mbit/s elapsed {} rexmit {} spurious {} rto {} resets {} fins {:?} same {}", a[2], o.goodput()/1e6, o.elapsed, o.retransmissions, o.spurious_retransmissions, o.timeouts(), o.resets, o.fins, o.sent == o.received), Err(e) => println!("{e}") }
}
