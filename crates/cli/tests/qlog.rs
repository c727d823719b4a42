//! `reknit analyze` on qlogs: those of simulations say what the simulations say, and options of captures are refused.

mod common;

use std::process::Command;

use serde_json::Value;

use common::{Temporary, reknit, stdout};

/// A qlog of a simulation, and the result of the simulation.
fn simulated(path: &str, variant: &str) -> (Temporary, Value) {
    let log = Temporary::new("run.qlog");
    let arguments = ["simulate", "--path", path, "--variant", variant, "--duration", "10 s"];
    let result = stdout(&[&arguments[..], &["--qlog", log.name(), "--json"]].concat());
    (log, serde_json::from_str::<Value>(&result).unwrap()["run"].take())
}

fn only_direction(file: &str) -> Value {
    let analysis: Value = serde_json::from_str(&stdout(&["analyze", file, "--json"])).unwrap();
    assert_eq!((&analysis["format"], &analysis["warnings"]), (&"reknit-qlog-1".into(), &Value::Array(Vec::new())));
    assert_eq!(analysis["directions"].as_array().unwrap().len(), 1, "{analysis}");
    analysis["directions"][0].clone()
}

#[test]
fn the_counts_are_those_of_the_simulation() {
    // Reordering without loss, loss without reordering.
    for (path, variant, shortest_ms) in [("two-paths-50ms", "sack", 100.0), ("lossy", "sack", 20.0)] {
        let (log, run) = simulated(path, variant);
        let direction = only_direction(log.name());
        let lost = run["lost_packets"].as_u64().unwrap();
        assert_eq!(direction["packets"], run["segments_sent"], "{path}");
        assert_eq!(direction["declared_lost"], run["retransmissions"]["total"], "{path}");
        assert_eq!(direction["lost"].as_u64().unwrap(), lost, "{path}");
        assert_eq!(direction["window"]["reductions"], run["window_cuts"]["total"], "{path}");
        assert_eq!(direction["window"]["false_reductions"], run["false_window_cuts"], "{path}");
        let goodput = [&direction["goodput_mbit_s"], &run["goodput_mbit_s"]].map(|rate| rate.as_f64().unwrap());
        assert!((goodput[0] / goodput[1] - 1.0).abs() < 0.05, "{path}: {goodput:?}");
        let least_ms = direction["round_trip"]["least_ms"].as_f64().unwrap();
        assert!((shortest_ms..shortest_ms + 2.0).contains(&least_ms), "{path}: {least_ms}");
        let text = stdout(&["analyze", log.name()]);
        let [is_late, is_lost] =
            ["packets were late, not lost: ", "% of packets were lost, mostly one by one: look for"]
                .map(|words| text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words));
        assert_eq!((is_late, is_lost), (lost == 0, lost > 0), "{text}");
        let advises_order =
            direction["advice"].as_array().unwrap().iter().any(|line| line.to_string().contains("reorder"));
        assert_eq!(advises_order, path != "lossy", "{text}");
        for line in ["what", "path", "cost", "do", "sure"] {
            assert!(text.lines().any(|text| text.starts_with(line)), "{line}: {text}");
        }
    }
}

#[test]
fn the_content_decides_not_the_name() {
    let (log, _) = simulated("two-paths-50ms", "sack");
    let direction = only_direction(log.name());
    let other = Temporary::new("capture.pcap");
    std::fs::copy(log.name(), other.name()).unwrap();
    assert_eq!(only_direction(other.name()), direction);
    let piped = |file: &str| {
        let input = std::fs::File::open(file).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_reknit")).args(["analyze", "-", "--json"]).stdin(input).output();
        serde_json::from_slice::<Value>(&output.unwrap().stdout).unwrap()["directions"][0].take()
    };
    assert_eq!(piped(log.name()), direction);
    let plain = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/qlogs/arrays.qlog");
    assert_eq!(piped(&format!("{plain}.gz")), only_direction(plain));
}

#[test]
fn options_of_captures_are_refused() {
    let (log, _) = simulated("two-paths-50ms", "sack");
    let log = log.name();
    let capture = Temporary::capture("two-paths-50ms", "sack", "sender", "2 s");
    let html = Temporary::new("page.html");
    for (arguments, says) in [
        (&["analyze", log, "--at", "sender"][..], "--at works on captures, and this is a qlog; allowed are --stream, "),
        (&["analyze", log, "--html", html.name()], "--html works on captures"),
        (&["analyze", capture.name(), log], "is none: give either qlogs or captures"),
        (&["analyze", log, "--stream", "7"], "--stream 7: there is no connection 7 with data; they are 0 to 0"),
    ] {
        let output = reknit(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(says), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    stdout(&["analyze", log, "--stream", "0"]);
}
