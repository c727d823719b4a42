//! A shield on a gateway between a client and a server.
#![expect(clippy::disallowed_methods, reason = "live tests measure time")]

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reknit_host::service;
use reknit_shield::{METRICS, Mode, Settings};
use reknit_testkit::gateway::{Namespace, Network, SERVER, SERVER_V6, Service};
use reknit_testkit::machine;

/// The variable that turns this program into a shield: its mode.
const MODE: &str = "REKNIT_SHIELD_TEST_MODE";
const MB: usize = 1_000_000;

fn can_run() -> bool {
    let has_queues = Path::new("/proc/self/net/netfilter/nfnetlink_queue").exists();
    if !has_queues {
        machine::skip("NFQUEUE");
    }
    has_queues && machine::has(&["root", "ip", "iptables", "ip6tables"])
}

/// Runs the shield if this process is to be one. The first test of the program, which the others start.
#[test]
fn shield_process() {
    if let Some(mode) = std::env::var_os(MODE) {
        let mode = if mode == "observe" { Mode::Observe } else { Mode::Resequence };
        let interfaces = vec!["side2".to_owned()]; // where the server's packets arrive
        let ended = reknit_shield::run(&Settings { mode, interfaces, ..Settings::default() });
        if let Err(error) = &ended {
            eprintln!("error: {error}");
        }
        std::process::exit(i32::from(ended.is_err()));
    }
}

fn spawn(gateway: &Namespace, mode: &str) -> Service {
    Service::spawn(gateway, "shield_process", MODE, mode.into())
}

fn started(mode: &str) -> (Network, Service) {
    let network = Network::new();
    network.server.serve(80);
    let shield = spawn(&network.gateway, mode);
    shield.wait_for("event=started");
    (network, shield)
}

fn server() -> SocketAddr {
    format!("{SERVER}:80").parse().unwrap()
}

fn rules(gateway: &Namespace) -> String {
    ["iptables", "ip6tables"].map(|program| gateway.command(&format!("{program} -t mangle -S"))).concat()
}

/// True if the shield sees at least so many packets within some seconds.
fn sees_packets(gateway: &Namespace, at_least: u64) -> bool {
    let until = Instant::now() + Duration::from_secs(3);
    loop {
        let metrics = gateway.run(|| service::fetch("shield", METRICS)).unwrap();
        let value = metrics.lines().find_map(|line| line.strip_prefix("reknit_shield_packets_total "));
        let value: u64 = value.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap();
        if value >= at_least || Instant::now() > until {
            return value >= at_least;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The process that reads the queues.
fn worker(shield: &Service) -> Pid {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", shield.id())).unwrap();
    let children = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap());
    let worker = children.collect::<String>().split_whitespace().next().map(str::parse);
    Pid::from_raw(worker.expect("a worker").unwrap())
}

#[test]
fn packets_of_both_families_pass_through_the_queues() {
    if !can_run() {
        return;
    }
    let (network, shield) = started("resequence");
    for address in [server(), format!("[{SERVER_V6}]:80").parse().unwrap()] {
        let mut connection = network.client.connect(address).unwrap();
        connection.transfer(20 * MB).unwrap();
        connection.close().unwrap();
    }
    assert!(sees_packets(&network.gateway, 100), "{}", shield.log());
    assert!(rules(&network.gateway).contains("-j REKNIT_SHIELD"));
}

#[test]
fn a_shield_that_only_observes_changes_nothing() {
    if !can_run() {
        return;
    }
    let (network, shield) = started("observe");
    network.client.connect(server()).unwrap().transfer(5 * MB).unwrap();
    assert!(sees_packets(&network.gateway, 10), "{}", shield.log());
    assert!(!rules(&network.gateway).contains("REKNIT_SHIELD"));
}

#[test]
fn after_a_kill_packets_pass_and_the_next_instance_cleans_up() {
    if !can_run() {
        return;
    }
    let (network, mut shield) = started("resequence");
    let mut open = network.client.connect(server()).unwrap();
    open.transfer(MB).unwrap();
    shield.kill();
    let killed = Instant::now();
    network.client.connect(server()).unwrap().transfer(MB).unwrap();
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    open.transfer(MB).unwrap();
    assert!(network.gateway.run(reknit_shield::leftovers::found).is_some());
    let shield = spawn(&network.gateway, "resequence");
    shield.wait_for("event=cleaned");
    shield.wait_for("event=started");
    assert_eq!(rules(&network.gateway).matches("-i side2").count(), 4);
    open.transfer(MB).unwrap();
    assert!(network.gateway.run(reknit_shield::leftovers::found).is_none());
}

#[test]
fn a_worker_that_hangs_or_dies_is_replaced_and_traffic_flows() {
    if !can_run() {
        return;
    }
    let (network, shield) = started("resequence");
    let mut open = network.client.connect(server()).unwrap();
    open.transfer(MB).unwrap();
    kill(worker(&shield), Signal::SIGSTOP).unwrap();
    let stopped = Instant::now();
    open.transfer(1000).unwrap();
    assert!(stopped.elapsed() < Duration::from_millis(500), "{:?}\n{}", stopped.elapsed(), shield.log());
    shield.wait_for("event=hung");
    shield.wait_for("event=restarted");
    open.transfer(MB).unwrap();
    kill(worker(&shield), Signal::SIGKILL).unwrap();
    open.transfer(MB).unwrap();
    shield.wait_for("event=ended-early");
}

#[test]
fn a_second_instance_is_refused() {
    if !can_run() {
        return;
    }
    let (network, _shield) = started("resequence");
    let mut second = spawn(&network.gateway, "resequence");
    assert!(!second.ended());
    second.wait_for("error: another `reknit shield` runs in this network namespace");
}
