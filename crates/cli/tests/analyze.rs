//! `reknit analyze` on captures of simulated connections: the page, the annotated copy, and the measures.

mod common;

use std::process::Command;

use reknit_testkit::machine;
use serde_json::Value;

use common::{Temporary, reknit, stdout};

/// Every other packet is late.
fn capture(side: &str) -> Temporary {
    Temporary::capture("two-paths-50ms", "sack", side, "4 s")
}

fn json(capture: &str) -> Value {
    serde_json::from_str(&stdout(&["analyze", capture, "--json"])).unwrap()
}

fn count(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

#[test]
fn the_page_has_the_answer_and_the_points_and_refers_to_nothing() {
    let capture = capture("sender");
    let page = Temporary::new("page.html");
    let text = stdout(&["analyze", capture.name(), "--html", page.name()]);
    let html = std::fs::read_to_string(&page.0).unwrap();
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    for outside in ["http:", "https:", "//", "src=", "@import", "url("] {
        let body = html.replace("// ", ""); // comments of the script
        assert!(!body.contains(outside), "the page contains {outside}");
    }
    for line in ["what", "path", "cost", "do", "sure"] {
        assert!(html.contains(&format!("<dt>{line}</dt><dd>")), "{line} is missing");
        assert!(text.lines().any(|text| text.starts_with(line)), "{line} is missing in the terminal");
    }
    let (_, data) = html.split_once("id=\"data\">").unwrap();
    let drawings: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let direction = &json(capture.name())["directions"][0];
    let points = |kind: &str| drawings[0][kind]["at"].as_array().unwrap().len();
    for (kind, verdict) in [("lost", "lost"), ("reordered", "reordered"), ("spurious", "spurious")] {
        assert_eq!(points(kind), count(&direction["verdicts"][verdict]), "{kind}");
    }
    assert!(points("reordered") > 0 && points("spurious") > 0 && points("sack") > 0);
    assert_eq!(points("data") + points("again"), count(&direction["packets"]));
    // The handshake was captured, so the window is known.
    assert_eq!(points("edge"), points("ack"));
}

/// What to do about the transfer in this capture.
fn advice(capture: &Temporary) -> Vec<String> {
    let advice = json(capture.name())["directions"][0]["advice"].take();
    serde_json::from_value(advice).unwrap()
}

#[test]
fn advice_claims_no_more_than_the_capture_shows() {
    // Without timestamps and IP identifications, the receiver's capture has no verdict on the retransmissions of a sender
    // that is slow because of reordering.
    let advised = advice(&Temporary::capture("yang-50", "sack", "receiver", "15 s"));
    assert_eq!(advised, ["some events could not be decided: also capture at the sender"]);
    // This sender is always slow, so no reduction shows, but the packets show the rate of the bottleneck.
    let slow = Temporary::capture("random-delay", "eifel", "sender", "15 s");
    let text = stdout(&["analyze", slow.name()]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the sender stayed slow after spurious retransmissions, which cost an estimated "), "{text}");
    let cost = json(slow.name())["directions"][0]["cost"].take();
    assert!(cost["lost_least_mbit_s"].as_f64() > Some(2.0) && cost["lost_is_least"] == false, "{cost}");
}

#[test]
fn advice_is_what_helps_in_a_replay_of_the_path() {
    let of = |path: &str, variant: &str| {
        let capture = Temporary::capture(path, variant, "sender", "15 s");
        (advice(&capture), json(capture.name())["directions"][0]["replayed"].take())
    };
    // A sender that counts duplicate ACKs, where every other packet is late.
    let (counting, replayed) = of("two-paths-50ms", "sack");
    assert!(counting[0].starts_with("use a sender that detects losses by time (RACK, RFC 8985)"), "{counting:?}");
    assert!(counting[1].starts_with("find what reorders ") && counting[1].contains(" instead of 0."), "{counting:?}");
    assert_eq!(replayed["sender"], "sack", "{replayed}");
    // Linux copes with that.
    let (linux, _) = of("two-paths-50ms", "linux");
    assert!(linux[0].starts_with("nothing will make it much faster: it uses 9"), "{linux:?}");
    // Random losses: BBR helps, and no word about reordering.
    let (cubic, replayed) = of("lossy", "linux");
    assert!(cubic[0].starts_with("use BBR at the sender (Linux: "), "{cubic:?}");
    assert!(cubic[1].contains("% of packets were lost, mostly one by one"), "{cubic:?}");
    assert!(
        !cubic.iter().any(|line| line.contains("reorder")) && replayed["sender"] == "linux",
        "{cubic:?} {replayed}"
    );
    let (bbr, _) = of("lossy", "bbr1");
    assert!(["nothing will make it", "no setting "].iter().any(|start| bbr[0].starts_with(start)), "{bbr:?}");
}

#[test]
fn a_large_capture_is_thinned_out() {
    let capture = Temporary::new("large.pcapng");
    let arguments =
        ["compare", "--path", "two-paths-50ms", "--variants", "linux", "--duration", "60 s", "--seeds", "1"];
    stdout(&[&arguments[..], &["--no-oracle", "--pcap", capture.name(), "--pcap-side", "sender"]].concat());
    let page = Temporary::new("large.html");
    stdout(&["analyze", capture.name(), "--html", page.name()]);
    let html = std::fs::read_to_string(&page.0).unwrap();
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(!html.contains("\"step_us\":0,"), "nothing was thinned out");
}

#[test]
fn comments_are_where_the_verdicts_are() {
    let capture = capture("sender");
    let copy = Temporary::new("annotated.pcapng");
    stdout(&["analyze", capture.name(), "--annotate", copy.name()]);
    let (mut before, mut after) = (json(capture.name()), json(copy.name()));
    before["file"] = Value::Null;
    after["file"] = Value::Null;
    assert_eq!(before, after, "the copy gives another analysis");
    if !machine::has(&["tshark"]) {
        return;
    }
    let tshark = Command::new("tshark")
        .args(["-r", copy.name(), "-Y", "frame.comment", "-T", "fields", "-e", "frame.number", "-e", "frame.comment"])
        .output();
    let comments = String::from_utf8(tshark.unwrap().stdout).unwrap();
    let with = |what: &str| comments.lines().filter(|line| line.contains(what)).count();
    let verdicts = &before["directions"][0]["verdicts"];
    assert_eq!(with("late, not lost: by "), count(&verdicts["reordered"]), "{comments}");
    assert_eq!(with("spurious retransmission"), count(&verdicts["spurious"]), "{comments}");
    assert!(with("spurious retransmission after duplicate ACKs or SACK blocks: the data was not lost") > 0);
}

#[test]
fn densities_count_all_packets_that_arrived() {
    for side in ["sender", "receiver"] {
        let capture = capture(side);
        let analysis = json(capture.name());
        let direction = &analysis["directions"][0];
        let sum = |counts: &Value| counts.as_array().unwrap().iter().map(|pair| count(&pair[1])).sum::<usize>();
        let density = &direction["density"];
        let arrived = count(&direction["reordering"]["arrived"]);
        let counted = sum(&density["displacements"]);
        assert!(arrived > 100 && arrived - counted < arrived / 20, "{side}: {counted} of {arrived}");
        assert_eq!(sum(&density["occupancy"]), counted, "{side}");
        // Every other packet is overtaken.
        let displaced = density["displaced"].as_f64().unwrap();
        assert!(displaced > 0.3, "{side}: {displaced}");
        let text = stdout(&["analyze", capture.name()]);
        assert!(text.contains("restores the order (99 %)"), "{text}");
    }
}

#[test]
fn wrong_input_is_refused_in_one_line() {
    let capture = capture("sender");
    let file = capture.name();
    for (arguments, says) in [
        (&["analyze", "-", "--html", "a.html"][..], "--html reads the capture twice"),
        (&["analyze", file, file, "--annotate", "a.pcapng"], "--annotate works on a single capture; give one file"),
        (&["analyze", file, "--annotate", file], "this file is read; name another file"),
        (&["analyze", file, "--path", file], "this file is read"),
        (&["analyze", file, "--html", file], "this file is read"),
        (&["analyze", file, file, "--path", file], "this file is read"),
        (&["analyze", file, "--html", "/tmp/x", "--annotate", "/tmp/x"], "--html writes this file"),
        (&["analyze", file, "--html", "/nowhere/a.html"], "/nowhere/a.html: No such file"),
        (&["analyze", file, "--annotate", "/nowhere/a.pcapng"], "/nowhere/a.pcapng: No such file"),
    ] {
        let output = reknit(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(says), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// Captures of one simulated transfer at both of its ends.
fn both_ends() -> [Temporary; 2] {
    ["sender", "receiver"].map(capture)
}

#[test]
fn two_captures_of_the_same_packets_are_compared() {
    let [sender, receiver] = both_ends();
    let files = [sender.name(), receiver.name()];
    let document = stdout(&["analyze", files[0], files[1], "--same-clock", "--json"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    let flow = &document["flows"][0];
    assert_eq!(document["format"], "reknit-both-ends-1");
    assert_eq!((count(&flow["lost"]), count(&flow["near"])), (0, 0), "{flow}");
    // Every other packet takes 50 ms longer.
    assert!((40.0..56.0).contains(&flow["reordering"]["late_p50_ms"].as_f64().unwrap()), "{flow}");
    let path = Temporary::new("path.toml");
    let text = stdout(&["analyze", files[0], files[1], "--path", path.name()]);
    for line in [
        "what    TCP from 10.",
        "path    one-way delay: ",
        "clocks  the clock of the second capture is ",
        " flows captured at both points",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    stdout(&["paths", path.name()]);
    let separately = stdout(&["analyze", files[0], files[1], "--separately", "--json"]);
    let separately: Value = serde_json::from_str(&separately).unwrap();
    assert_eq!(separately.as_array().map(Vec::len), Some(2));
    for (arguments, says) in [
        (&["analyze", files[0], "--both-ends"][..], "--both-ends needs two captures"),
        (
            &["analyze", files[0], files[1], "--stream", "0"],
            "--stream works on a single capture, but these two are compared",
        ),
    ] {
        let error = String::from_utf8(reknit(arguments).stderr).unwrap();
        assert!(error.contains(says) && error.lines().count() == 1, "{arguments:?}: {error}");
    }
}

#[test]
fn a_part_of_a_capture_is_analyzed() {
    let capture = capture("sender");
    let directions = |arguments: &[&str]| -> Value {
        let all = [&["analyze", capture.name(), "--json"], arguments].concat();
        serde_json::from_str(&stdout(&all)).unwrap()
    };
    let whole = directions(&[]);
    let some = whole["directions"].as_array().unwrap().len();
    assert_eq!(directions(&["--host", "10.0.0.0/8"])["directions"], whole["directions"]);
    for (option, says) in [
        (["--host", "192.0.2.1"], "--host 192.0.2.1"),
        (["--port", "1"], "--port 1"),
        (["--from", "1000 s"], "--from '1000 s'"),
    ] {
        for json in [&[][..], &["--json"]] {
            let output = reknit(&[&["analyze", capture.name()], &option[..], json].concat());
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(error, format!("error: {}: no connection with data matches {says}\n", capture.name()));
            assert!(output.status.code() == Some(1) && output.stdout.is_empty());
        }
    }
    let part = directions(&["--from", "1 s", "--to", "2.5 s"]);
    let direction = &part["directions"][0];
    assert_eq!((part["directions"].as_array().unwrap().len(), &part["warnings"]), (some, &serde_json::json!([])));
    assert!((1.3..=1.5).contains(&part["duration_s"].as_f64().unwrap()), "{part}");
    assert!(count(&part["packets"]) < count(&whole["packets"]) / 2);
    // The handshake came before.
    assert_eq!(direction["options"]["sack"], true, "{direction}");
    let error = String::from_utf8(reknit(&["analyze", capture.name(), "--from", "noon"]).stderr).unwrap();
    assert!(error.contains("--from") && error.contains("must be a time since the first packet"), "{error}");
}

#[test]
fn names_do_not_reach_the_terminal_as_they_are() {
    let original = capture("sender");
    let odd = Temporary::new("a\u{1b}[2J\u{202e}b\nc.pcapng");
    std::fs::copy(&original.0, &odd.0).unwrap();
    let missing = format!("{}x", odd.name());
    for arguments in [&["analyze", odd.name()][..], &["analyze", odd.name(), "--json"], &["analyze", &missing]] {
        let output = reknit(arguments);
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        let is_bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(is_bad) && !text.contains("b\nc.pcapng"), "{text:?}");
        assert!(text.contains("[2J"), "{text:?}");
    }
}

#[test]
fn other_formats_come_with_the_command_that_converts_them() {
    let file = Temporary::new("old trace.snoop");
    std::fs::write(&file.0, b"snoop\0\0\0\0\0\0\x02\0\0\0\x04 and more of it").unwrap();
    let error = String::from_utf8(reknit(&["analyze", file.name()]).stderr).unwrap();
    let line = format!("editcap -F pcapng '{}' '{}'", file.name(), file.0.with_extension("pcapng").display());
    assert!(error.contains("is a capture of snoop (Solaris); convert it: ") && error.contains(&line), "{error}");
}

/// The type of a block with a packet (Enhanced Packet Block).
const PACKET: u32 = 6;

fn number(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(block[at..at + 4].try_into().unwrap())
}

/// The blocks of a pcapng file.
fn blocks(mut file: &[u8]) -> Vec<&[u8]> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let (block, rest) = file.split_at(number(file, 4) as usize);
        blocks.push(block);
        file = rest;
    }
    blocks
}

/// The packets of a pcapng file, with at most `len` bytes each.
fn shortened(file: &[u8], len: u32) -> Vec<u8> {
    let mut short = Vec::new();
    for block in blocks(file) {
        if number(block, 0) == PACKET {
            let captured = number(block, 20).min(len);
            let padded = captured.next_multiple_of(4);
            let new_total = (32 + padded).to_le_bytes();
            short.extend([&block[..4], &new_total, &block[8..20], &captured.to_le_bytes(), &block[24..28]].concat());
            short.extend(&block[28..28 + captured as usize]);
            short.extend(vec![0; (padded - captured) as usize]);
            short.extend(new_total);
        } else {
            short.extend(block);
        }
    }
    short
}

#[test]
fn without_sack_blocks_nothing_is_said_about_the_order() {
    let capture = Temporary::capture("displaced", "sack", "sender", "4 s");
    let whole = json(capture.name())["directions"][0].take();
    assert!(count(&whole["verdicts"]["reordered"]) > 0 && count(&whole["options"]["hidden_sacks"]) == 0);
    let short = Temporary::new("short.pcapng");
    // The headers of IP and TCP; the options of TCP are cut off.
    std::fs::write(&short.0, shortened(&std::fs::read(&capture.0).unwrap(), 40)).unwrap();
    let direction = json(short.name())["directions"][0].take();
    assert!(count(&direction["options"]["hidden_sacks"]) > 0);
    let text = stdout(&["analyze", short.name()]);
    assert!(text.contains("whether packets were reordered is not known") && !text.contains("in order"), "{text}");
}

/// The packets of a pcapng file that this host sent.
fn sent_by(file: &[u8], host: u8) -> Vec<u8> {
    // Before the packet, a block has 28 bytes; the source of an IPv4 packet ends at its byte 15.
    let is_wanted = |block: &&[u8]| number(block, 0) != PACKET || block[28 + 15] == host;
    blocks(file).into_iter().filter(is_wanted).collect::<Vec<_>>().concat()
}

#[test]
fn what_one_half_of_a_connection_does_not_show_is_not_known() {
    let capture = Temporary::capture("lossy", "sack", "sender", "4 s");
    let file = std::fs::read(&capture.0).unwrap();
    let half = Temporary::new("half.pcapng");
    let text = |host: u8| {
        std::fs::write(&half.0, sent_by(&file, host)).unwrap();
        stdout(&["analyze", half.name()]).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let of_data = text(1);
    assert!(of_data.contains("so whether they arrived is not known"), "{of_data}");
    assert!(of_data.contains("how many were lost is not known"), "{of_data}");
    assert!(!of_data.contains("no packet was reordered"), "{of_data}");
    let of_acks = text(2);
    assert!(of_acks.contains("bytes acknowledged, but not in the capture"), "{of_acks}");
    assert!(of_acks.contains("so what was lost or late is not known"), "{of_acks}");
}
