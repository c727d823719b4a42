//! A proxy on a gateway between a client and a server.
#![expect(clippy::disallowed_methods, reason = "live tests measure time")]

mod network;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use network::{Proxy, can_run};
use nix::sys::signal::Signal;
use reknit_host::service;
use reknit_proxy::settings::METRICS;
use reknit_testkit::gateway::{CLIENT, Connection, Network, SERVER, SERVER_V6};
use tempfile::TempDir;

#[test]
fn proxy_process() {
    network::be_a_proxy();
}

const MB: usize = 1_000_000;

fn server() -> SocketAddr {
    format!("{SERVER}:80").parse().unwrap()
}

/// Settings in a file.
struct File(TempDir);

impl File {
    fn new(text: &str) -> File {
        let file = File(TempDir::new().unwrap());
        file.write(text);
        file
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path(), text).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("proxy.toml")
    }
}

/// Settings with one listener for the server; `more` belongs to the listener.
fn settings(top: &str, more: &str) -> String {
    format!("untouched = 0\n{top}\n[[listeners]]\nlisten = \"{SERVER}:80\"\nto = \"{SERVER}:80\"\n{more}\n")
}

fn started(file: &File) -> (Network, Proxy) {
    let network = Network::new();
    network.server.serve(80);
    let proxy = Proxy::start(&network.gateway, &file.path());
    (network, proxy)
}

/// Connects, and again if a SYN was lost with the device.
fn connect(network: &Network) -> Connection {
    network.client.connect(server()).unwrap()
}

#[test]
fn data_arrives_in_both_directions_and_the_server_sees_the_client() {
    if !can_run() {
        return;
    }
    let (network, proxy) = started(&File::new(&settings("", "")));
    let mut connection = connect(&network);
    assert_eq!(connection.seen().ip().to_string(), CLIENT);
    assert!(connection.is_relayed(), "{}", proxy.log());
    connection.transfer(20 * MB).unwrap();
    connection.close().unwrap();
    proxy.wait_for("event=closed");
    assert!(proxy.log().contains("to_client=20000"), "{}", proxy.log());
}

#[test]
fn ipv6_is_the_same() {
    if !can_run() {
        return;
    }
    let file = File::new(&format!("untouched = 0\n[[listeners]]\nlisten = \"[{SERVER_V6}]:80\"\n"));
    let (network, _proxy) = started(&file);
    let mut connection = network.client.connect(format!("[{SERVER_V6}]:80").parse().unwrap()).unwrap();
    assert!(connection.is_relayed() && connection.seen().ip().to_string() == "fd01::2", "{}", connection.seen());
    connection.transfer(2 * MB).unwrap();
}

#[test]
fn refused_stays_refused_unreachable_stays_unreachable_and_a_reset_is_passed_on() {
    if !can_run() {
        return;
    }
    let other =
        "[[listeners]]\nlisten = \"10.2.0.2:81\"\n[[listeners]]\nlisten = \"10.2.0.2:82\"\nto = \"10.9.0.1:80\"\n";
    let (network, proxy) = started(&File::new(&settings("", other)));
    network.gateway.ip("route add unreachable 10.9.0.0/16");
    let kind = |port: u16| {
        let address = SocketAddr::new(server().ip(), port);
        network.client.connect(address).err().map(|error| error.kind())
    };
    assert_eq!(kind(81), Some(ErrorKind::ConnectionRefused), "{}", proxy.log());
    assert_eq!(kind(82), Some(ErrorKind::HostUnreachable), "{}", proxy.log());
    assert_eq!(kind(80), None);
    let reset = connect(&network).reset_by_server();
    assert_eq!(reset.unwrap_err().kind(), ErrorKind::ConnectionReset, "{}", proxy.log());
}

#[test]
fn a_client_that_was_told_that_the_server_is_unreachable_counts_once() {
    if !can_run() {
        return;
    }
    let nobody = "[[listeners]]\nlisten = \"10.2.0.2:81\"\nto = \"10.2.0.99:80\"\n";
    let (network, proxy) = started(&File::new(&settings("", nobody)));
    for _ in 0..2 {
        let error = network.client.connect("10.2.0.2:81".parse().unwrap()).err().map(|error| error.kind());
        assert_eq!(error, Some(ErrorKind::HostUnreachable), "{}", proxy.log());
    }
    // The kernel learns after three seconds that nobody has the address, just when clients repeat their SYN.
    thread::sleep(Duration::from_secs(4));
    let metrics = network.gateway.run(|| service::fetch("proxy", METRICS)).unwrap();
    for (name, value) in [("connections", 0), ("connections_unreachable_total", 2)] {
        let line = format!("reknit_proxy_{name}{{listener=\"10.2.0.2:81\",variant=\"reknit-bbr\"}} {value}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    assert_eq!(proxy.log().matches("event=failed").count(), 2, "{}", proxy.log());
}

#[test]
fn after_a_kill_the_kernel_takes_new_connections_within_a_second_and_after_a_restart_the_proxy() {
    if !can_run() {
        return;
    }
    let file = File::new(&settings("", ""));
    let (network, mut proxy) = started(&file);
    let mut open = connect(&network);
    open.transfer(MB).unwrap();
    proxy.kill();
    let killed = Instant::now();
    let mut by_kernel = connect(&network);
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    assert!(!by_kernel.is_relayed());
    by_kernel.transfer(MB).unwrap();
    // The server knows nothing of the connection that the proxy had.
    assert!(open.transfer(MB).is_err());
    let proxy = Proxy::start(&network.gateway, &file.path());
    assert!(proxy.log().contains("event=cleaned"), "{}", proxy.log());
    by_kernel.transfer(MB).unwrap(); // it is still the kernel's
    let mut by_proxy = connect(&network);
    assert!(by_proxy.is_relayed());
    by_proxy.transfer(MB).unwrap();
}

#[test]
fn closed_means_that_nothing_passes_after_a_kill() {
    if !can_run() {
        return;
    }
    let (network, mut proxy) = started(&File::new(&settings("fail = \"closed\"", "")));
    connect(&network).transfer(MB).unwrap();
    proxy.kill();
    let error = network.client.connect(server()).err().map(|error| error.kind());
    assert_eq!(error, Some(ErrorKind::HostUnreachable));
    // The commands of docs/guide/deploy.md leave nothing.
    for command in [
        "nft delete table inet reknit_proxy",
        "ip rule del pref 10 lookup 29291",
        "ip rule del pref 10 lookup 29292",
        "ip route flush table 29292",
        "ip route flush table 29291",
    ] {
        network.gateway.command(command);
    }
    assert!(!network.gateway.ip("rule show").contains("fwmark"));
    assert!(!network.gateway.ip("route show table all").contains("2929"));
    assert!(network.client.connect(server()).is_ok_and(|connection| !connection.is_relayed()));
}

#[test]
fn after_a_signal_open_connections_end_and_nothing_is_left() {
    if !can_run() {
        return;
    }
    let (network, mut proxy) = started(&File::new(&settings("", "")));
    let (rules, routes) = ("rule show", "route show table all");
    let mut open = connect(&network);
    proxy.signal(Signal::SIGTERM);
    proxy.wait_for("event=draining");
    assert!(!connect(&network).is_relayed());
    open.transfer(5 * MB).unwrap();
    open.close().unwrap();
    assert!(proxy.ended(), "{}", proxy.log());
    assert!(proxy.log().contains("connections_reset=0 undelivered=nothing"), "{}", proxy.log());
    assert_eq!(network.gateway.command("nft list tables"), "");
    assert!(!network.gateway.ip(rules).contains("fwmark") && !network.gateway.ip(routes).contains("2929"));
}

#[test]
fn a_reload_adds_a_listener_and_loses_no_connection() {
    if !can_run() {
        return;
    }
    let file = File::new(&settings("", ""));
    let (network, proxy) = started(&file);
    network.server.serve(81);
    let mut open = connect(&network);
    file.write("listeners = 1");
    proxy.signal(Signal::SIGHUP);
    proxy.wait_for("event=reload error=");
    file.write(&settings("", "[[listeners]]\nlisten = \"10.2.0.2:81\"\n"));
    proxy.signal(Signal::SIGHUP);
    proxy.wait_for("event=reloaded listeners=2");
    assert!(network.client.connect("10.2.0.2:81".parse().unwrap()).unwrap().is_relayed());
    open.transfer(MB).unwrap();
    file.write(&settings("mtu = 1400", ""));
    proxy.signal(Signal::SIGHUP);
    proxy.wait_for("proxy.toml: mtu: another value needs a restart; nothing was applied.");
    file.write(&settings("", "[[listeners]]\nlisten = \"[fd02::2]:81\"\n"));
    proxy.signal(Signal::SIGHUP);
    proxy.wait_for("proxy.toml: listeners: adding the first or removing the last one of IPv4 or IPv6 needs a restart");
}

#[test]
fn reloads_under_load_lose_nothing() {
    if !can_run() {
        return;
    }
    let file = File::new(&settings("", ""));
    let (network, proxy) = started(&file);
    let mut open = connect(&network);
    let transfer = thread::spawn(move || open.transfer(40 * MB));
    for round in 1..=8 {
        file.write(&settings(&format!("max_connections = {}", 100 + round), ""));
        proxy.signal(Signal::SIGHUP);
        let mut new = connect(&network);
        new.transfer(MB / 10).unwrap();
        new.close().unwrap();
    }
    transfer.join().unwrap().unwrap();
    proxy.wait_for("event=reloaded");
    assert!(!proxy.log().contains("event=failed"), "{}", proxy.log());
}

#[test]
fn beyond_the_limit_and_for_the_untouched_share_the_kernel_takes_connections() {
    if !can_run() {
        return;
    }
    let (network, proxy) = started(&File::new(&settings("max_connections = 3", "")));
    let connections: Vec<Connection> = (0..5).map(|_| connect(&network)).collect();
    let relayed: Vec<bool> = connections.iter().map(Connection::is_relayed).collect();
    assert_eq!(relayed, [true, true, true, false, false], "{}", proxy.log());
    drop(proxy);
    let text = settings("", "").replace("untouched = 0", "untouched = 0.25");
    let file = File::new(&text);
    let _proxy = Proxy::start(&network.gateway, &file.path());
    let relayed = (0..64).filter(|_| connect(&network).is_relayed()).count();
    assert!((36..=60).contains(&relayed), "{relayed} of 64");
}

#[test]
fn a_gateway_may_use_its_tcp_on_the_leg_to_the_servers() {
    if !can_run() {
        return;
    }
    let file = File::new("untouched = 0\n[[listeners]]\nlisten = \"0.0.0.0:80\"\nbad_leg = \"servers\"\n");
    let (network, proxy) = started(&file);
    let mut connection = connect(&network);
    assert!(connection.is_relayed() && connection.seen().ip().to_string() == CLIENT, "{}", proxy.log());
    connection.transfer(20 * MB).unwrap();
    connection.close().unwrap();
    let refused = network.client.connect("10.2.0.2:80".parse().unwrap());
    assert!(refused.is_ok());
}

#[test]
fn a_second_instance_is_refused() {
    if !can_run() {
        return;
    }
    let file = File::new(&settings("", ""));
    let (network, _proxy) = started(&file);
    let mut second = Proxy::spawn(&network.gateway, &file.path());
    assert!(!second.ended());
    second.wait_for("error: another `reknit proxy` runs in this network namespace");
}

#[test]
fn a_proxy_on_the_server_itself_takes_connections_to_its_address() {
    if !can_run() {
        return;
    }
    for to in ["10.2.0.2:80", "127.0.0.1:80"] {
        let client = if to.starts_with("127") { "client_address = \"hide\"\n" } else { "" };
        let text = format!("untouched = 0\n[[listeners]]\nlisten = \"10.2.0.2:80\"\nto = \"{to}\"\n{client}");
        let (network, file) = (Network::new(), File::new(&text));
        network.server.serve(80);
        let mut proxy = Proxy::start(&network.server, &file.path());
        let mut connection = connect(&network);
        assert!(connection.is_relayed(), "{to}: {}", proxy.log());
        connection.transfer(5 * MB).unwrap();
        proxy.kill();
        let mut connection = connect(&network);
        assert!(!connection.is_relayed());
        connection.transfer(MB).unwrap();
        let left = || network.server.run(reknit_proxy::leftovers::found);
        assert!(left().is_some_and(|left| left.contains(".forwarding was 0")), "{:?}", left());
        let mut proxy = Proxy::start(&network.server, &file.path());
        assert!(connect(&network).is_relayed(), "{to}: {}", proxy.log());
        proxy.signal(Signal::SIGTERM);
        assert!(proxy.ended(), "{}", proxy.log());
        assert_eq!(left(), None);
    }
}

#[test]
fn transfers_by_the_proxy_and_by_the_kernel_are_compared() {
    if !can_run() {
        return;
    }
    let file = File::new(&settings("", "").replace("untouched = 0", "untouched = 0.25"));
    let (network, proxy) = started(&file);
    for _ in 0..48 {
        let mut connection = connect(&network);
        connection.transfer(200_000).unwrap();
        connection.close().unwrap();
    }
    let metrics = network.gateway.run(|| service::fetch("proxy", METRICS)).unwrap();
    let value = |name: &str, by: &str| -> f64 {
        let start = format!("reknit_proxy_{name}{{listener=\"{SERVER}:80\"{by}}} ");
        let found = metrics.lines().find_map(|line| line.strip_prefix(&start));
        found.unwrap_or_else(|| panic!("{start}: {metrics}\n{}", proxy.log())).parse().unwrap()
    };
    for by in [",by=\"kernel\"", ",by=\"proxy\""] {
        let connections = value("compared_connections_total", by);
        assert!((1.0..=36.0).contains(&connections), "{metrics}");
        assert!((value("compared_bytes_total", by) - 200_000.0 * connections).abs() < 100.0 * connections, "{metrics}");
        assert!(value("compared_seconds_total", by) > 0.0, "{metrics}");
    }
    let untouched = value("connections_untouched_total", "");
    let opened = value("connections_opened_total", ",variant=\"reknit-bbr\"");
    assert!(untouched >= 1.0 && (untouched + opened - 48.0).abs() < 0.5, "{metrics}");
}

#[test]
fn a_server_may_be_told_the_client_by_the_proxy_protocol() {
    if !can_run() {
        return;
    }
    let network = Network::new();
    let header = network.server.run(|| {
        let listener = TcpListener::bind((SERVER, 80)).unwrap();
        let (told, header) = channel();
        thread::spawn(move || {
            let (mut stream, from) = listener.accept().unwrap();
            let mut header = [0; 28];
            stream.read_exact(&mut header).unwrap();
            stream.write_all(b"welcome\n").unwrap();
            told.send((header, from)).unwrap();
        });
        header
    });
    let _proxy = Proxy::start(&network.gateway, &File::new(&settings("", "client_address = \"proxy-v2\"")).path());
    let client = network.client.run(|| {
        let mut stream = TcpStream::connect(server()).unwrap();
        let mut line = [0; 8];
        stream.read_exact(&mut line).unwrap();
        (line, stream.local_addr().unwrap())
    });
    let (header, from) = header.recv().unwrap();
    assert_eq!((&client.0, from.ip().to_string()), (b"welcome\n", "10.2.0.1".to_owned()));
    assert_eq!(header[16..24], [10, 1, 0, 2, 10, 2, 0, 2]);
    assert_eq!(header[24..26], client.1.port().to_be_bytes());
}
