//! `reknit watch` on a file that grows, on standard input, and live on an interface.

mod common;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use reknit_testkit::machine;
use serde_json::Value;

use common::{Temporary, reknit, stdout};

const REKNIT: &str = env!("CARGO_BIN_EXE_reknit");

/// Every other packet is late.
fn capture() -> Temporary {
    Temporary::capture("two-paths-50ms", "sack", "receiver", "4 s")
}

fn watch(arguments: &[&str]) -> Child {
    Command::new(REKNIT)
        .arg("watch")
        .args(arguments)
        .env("COLUMNS", "200")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn late(file: &str) -> u64 {
    let analysis: Value = serde_json::from_str(&stdout(&["analyze", file, "--json"])).unwrap();
    analysis["directions"][0]["verdicts"]["reordered"].as_u64().unwrap()
}

#[test]
fn standard_input_gives_the_counts_of_an_analysis() {
    let file = capture();
    let mut child = watch(&["-"]);
    child.stdin.take().unwrap().write_all(&std::fs::read(&file.0).unwrap()).unwrap();
    let done = child.wait_with_output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let late = late(file.name());
    assert!(late > 50 && text.contains(&format!(" {late} late, 0 duplicated")), "{late}: {text}");
}

#[test]
fn the_end_of_the_input_settles_what_is_undecided() {
    // Retransmissions just before the end: whether they were spurious is not decided by a later packet.
    let file = Temporary::capture("two-paths-50ms", "sack", "sender", "8 s");
    let analysis: Value = serde_json::from_str(&stdout(&["analyze", file.name(), "--json"])).unwrap();
    let verdicts = &analysis["directions"][0]["verdicts"];
    let mut child = watch(&["-"]);
    child.stdin.take().unwrap().write_all(&std::fs::read(&file.0).unwrap()).unwrap();
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let says = format!(
        "; {} lost, {} late, 0 duplicated, {} retransmitted spuriously, {} without a verdict",
        verdicts["lost"], verdicts["reordered"], verdicts["spurious"], verdicts["cannot_tell"]
    );
    assert!(text.contains(&says), "{says}: {text}");
}

#[test]
fn a_file_that_grows_is_followed_and_metrics_are_served() {
    let whole = capture();
    let bytes = std::fs::read(&whole.0).unwrap();
    let growing = Temporary::new("growing.pcapng");
    let (first, second) = bytes.split_at(bytes.len() / 2); // in the middle of a packet
    File::create(&growing.0).unwrap().write_all(first).unwrap();
    let mut child = watch(&[growing.name(), "--metrics", "127.0.0.1:0", "--duration", "60 s"]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("note: metrics at http://").unwrap().strip_suffix("/metrics").unwrap();
    // The first line comes from the first half.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    stdout.read_line(&mut said).unwrap();
    assert!(said.contains(" s: 10.") && said.contains(" late (99 %: "), "{said}");
    let before = metric(address, "reknit_verdicts_total{verdict=\"reordered\"}");
    OpenOptions::new().append(true).open(&growing.0).unwrap().write_all(second).unwrap();
    let late = late(whole.name());
    let mut after = before;
    while after < late {
        let mut more = String::new();
        assert!(stdout.read_line(&mut more).unwrap() > 0, "it ended with {after} of {late}");
        after = metric(address, "reknit_verdicts_total{verdict=\"reordered\"}");
    }
    assert!(before > 0 && before < late && after == late, "{before} {after} {late}");
    assert!(request(address, "GET / HTTP/1.1").starts_with("HTTP/1.1 404 "));
    // Clients that say nothing, more than are served at a time, do not keep others waiting.
    let silent: Vec<TcpStream> = (0..80).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(metric(address, "reknit_verdicts_total{verdict=\"reordered\"}"), late);
    drop(silent);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn request(address: &str, line: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    stream.write_all(format!("{line}\r\nHost: here\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn metric(address: &str, name: &str) -> u64 {
    let text = request(address, "GET /metrics HTTP/1.1");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}: {text}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn wrong_sources_are_refused_in_one_line() {
    let empty = Temporary::new("text.txt");
    std::fs::write(&empty.0, "this is a text, and no capture").unwrap();
    let name = empty.name();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = taken.local_addr().unwrap().to_string();
    for (arguments, says) in [
        (&["nowhere0"][..], "nowhere0: neither a file nor an interface; interfaces: "),
        (&[name, "--duration", "2 s"], "supported are pcap and pcapng"),
        (&[name, "--metrics", "192.0.2.1:1"], "no interface has this address"),
        (&[name, "--metrics", &in_use], "another program uses the port"),
    ] {
        let done = watch(arguments).wait_with_output().unwrap();
        let error = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success() && error.contains(says), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// A busy machine may disturb a transfer, so there are three attempts.
#[test]
fn packets_on_an_interface_that_reorders_are_seen() {
    if !machine::has(&[&machine::LIVE[..], &["python3"]].concat()) {
        return;
    }
    // In the namespace of the emulation: watch every interface and a single one, and receive 3 MB over the path. The single one
    // is a TUN device, which has no link-layer address.
    let tun = "$(python3 -c 'import socket; print(next(n for _, n in socket.if_nameindex() if n != \"lo\"))')";
    for source in ["any", tun] {
        watch_a_transfer(source);
    }
}

/// Watches a transfer over a path that reorders.
fn watch_a_transfer(source: &str) {
    let inside = format!(
        "{REKNIT} watch {source} --at receiver --duration '8 s' & sleep 1; \
         python3 -c 'import socket; s = socket.create_connection((\"server\", 5099)); \
         n = sum(iter(lambda: len(s.recv(1 << 16)), 0))'; wait"
    );
    let server = "python3 -c 'import socket; l = socket.create_server((\"\", 5099)); s = l.accept()[0]; \
                  s.sendall(bytes(3000000)); s.close()'";
    let mut said = String::new();
    for _ in 0..3 {
        let emulate = ["emulate", "--down", "two-paths-50ms", "--server", server, "--quiet", "--", "sh", "-c", &inside];
        let done = reknit(&emulate);
        said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let summary = said.lines().find(|line| line.contains(" TCP packets of ")).unwrap_or_default();
        let late = summary.split("; ").nth(1).and_then(|counts| counts.split(", ").nth(1));
        let late: u64 = late.and_then(|late| late.strip_suffix(" late")?.replace(',', "").parse().ok()).unwrap_or(0);
        if late > 20 && said.contains(" s: 10.") {
            return;
        }
    }
    panic!("no reordering was seen: {said}");
}
