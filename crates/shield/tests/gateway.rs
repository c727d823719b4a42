//! A shield on a gateway between a client and a server.
#![expect(clippy::disallowed_methods, reason = "live tests measure time")]

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::sockopt::BindToDevice;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, setsockopt, socket,
};
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
        let mode = match mode.to_str() {
            Some("observe") => Mode::Observe,
            Some("equalise") => Mode::Equalise { difference: None },
            _ => Mode::Resequence,
        };
        let mut interfaces = vec!["side2".to_owned()]; // where the server's packets arrive
        interfaces.extend(matches!(mode, Mode::Equalise { .. }).then(|| "side3".to_owned()));
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

/// Adds another link between the gateway and the server, 10.3.0.1 and 10.3.0.2.
fn add_link(network: &Network) {
    let (gateway, server) = (&network.gateway, &network.server);
    gateway.ip(&format!("link add side3 type veth peer name eth1 netns {}", server.id()));
    gateway.ip("address add 10.3.0.1/24 dev side3");
    gateway.ip("link set side3 up");
    gateway.run(|| {
        for interface in ["all", "side2", "side3"] {
            std::fs::write(format!("/proc/sys/net/ipv4/conf/{interface}/rp_filter"), "0").unwrap();
        }
    });
    server.ip("address add 10.3.0.2/24 dev eth1");
    server.ip("link set eth1 up");
}

/// Sends packets from `send(device, number)` one each 3 ms by two devices in turn, those of the second with a delay of 60 ms.
fn send_by_two(count: u64, mut send: impl FnMut(usize, u64)) {
    let began = Instant::now();
    let mut all: Vec<(u64, u64)> = (0..count).map(|n| (3 * n + n % 2 * 60, n)).collect();
    all.sort_unstable();
    for (ms, n) in all {
        std::thread::sleep((began + Duration::from_millis(ms)).saturating_duration_since(Instant::now()));
        send((n % 2) as usize, n);
    }
}

/// Sends segments of one TCP flow by two devices. Nobody expects them.
fn send_segments(count: u64) {
    let [first, second] = ["eth0", "eth1"].map(|device| {
        let socket = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw).unwrap();
        setsockopt(&socket, BindToDevice, &device.into()).unwrap();
        socket
    });
    let to = SockaddrIn::new(10, 2, 0, 1, 0);
    send_by_two(count, |device, n| {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 2, 0, 2, 10, 2, 0, 1, 0, 80, 0, 81];
        packet.extend((n as u32 * 100).to_be_bytes());
        packet.extend([0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend([0; 100]);
        let socket = if device == 0 { &first } else { &second };
        sendto(socket.as_raw_fd(), &packet, &to, MsgFlags::empty()).unwrap();
    });
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
    // On a busy machine it may not run for a while. Nothing waits for it.
    kill(worker(&shield), Signal::SIGSTOP).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    kill(worker(&shield), Signal::SIGCONT).unwrap();
    network.client.connect(server()).unwrap().transfer(5 * MB).unwrap();
    assert!(sees_packets(&network.gateway, 20), "{}", shield.log());
    assert!(!shield.log().contains("event=hung"), "{}", shield.log());
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
fn a_difference_that_was_learned_from_tcp_is_made_up_for_datagrams_too() {
    if !can_run() {
        return;
    }
    let network = Network::new();
    add_link(&network);
    let shield = spawn(&network.gateway, "equalise");
    shield.wait_for("event=started");
    let sink = network.gateway.run(|| UdpSocket::bind("0.0.0.0:90").unwrap());
    sink.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    network.server.run(|| {
        send_segments(100);
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        send_by_two(100, |device, n| {
            socket.send_to(&[n as u8], (if device == 0 { "10.2.0.1" } else { "10.3.0.1" }, 90)).unwrap();
        });
    });
    let mut numbers = Vec::new();
    let mut number = [0];
    while numbers.len() < 100 && sink.recv(&mut number).is_ok() {
        numbers.push(number[0]);
    }
    let metrics = network.gateway.run(|| service::fetch("shield", METRICS)).unwrap();
    assert_eq!(numbers.len(), 100, "{}", shield.log());
    // Without the shield, each one by the second device would be late.
    let late = numbers.iter().enumerate().filter(|(i, n)| numbers[..*i].iter().any(|other| other > n)).count();
    assert!(late < 15, "{numbers:?}\n{metrics}\n{}", shield.log());
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
