//! `reknit replay` on captures of simulated connections, whose path is known.

mod common;
#[expect(dead_code, reason = "only plain transfers are needed")]
#[path = "../../trace/tests/wire/mod.rs"]
mod wire;

use serde_json::Value;

use common::{Temporary, reknit, stdout};
use wire::{Headers, Wire};

fn capture(path: &str, variant: &str, side: &str) -> Temporary {
    Temporary::capture(path, variant, side, "6 s")
}

#[test]
fn the_path_is_found_and_the_replay_reproduces_the_capture() {
    for side in ["sender", "receiver"] {
        let capture = Temporary::capture("two-paths-50ms", "linux", side, "12 s");
        let arguments = ["replay", capture.name(), "--variants", "linux,sack", "--draws", "2", "--no-oracle", "--json"];
        let replay: Value = serde_json::from_str(&stdout(&arguments)).unwrap();
        assert_eq!(replay["format"], "reknit-replay-1");
        assert_eq!(replay["captured_at"], side);
        let path = &replay["path"];
        // 10 Mbit/s, 50 ms each way, every other packet 50 ms late.
        assert!((9.8..10.3).contains(&path["rate_mbit_s"].as_f64().unwrap()), "{side}: {path}");
        assert!((99.0..103.0).contains(&path["round_trip_ms"].as_f64().unwrap()), "{side}: {path}");
        let late = path["late"].as_f64().unwrap() / path["packets"].as_f64().unwrap();
        assert!((0.3..0.6).contains(&late), "{side}: {path}");
        assert_eq!(
            (&replay["check"]["holds"], &replay["refused"]),
            (&true.into(), &Value::Null),
            "{side}: {}",
            replay["check"]
        );
        // SACK reaches a tenth of that on this path.
        let goodput = |n: usize| replay["comparison"]["variants"][n]["goodput_mbit_s"]["mean"].as_f64().unwrap();
        assert!(goodput(1) < goodput(0) / 3.0, "{side}: {} {}", goodput(0), goodput(1));
    }
}

#[test]
fn of_both_kernels_the_one_that_reproduces_the_capture_is_taken() {
    // At random losses CUBIC slows down, and BBR does not.
    for (variant, other) in [("linux", "bbr1"), ("bbr1", "linux")] {
        let capture = capture("lossy", variant, "sender");
        let arguments =
            ["replay", capture.name(), "--variants", "sack", "--draws", "5", "--no-oracle", "--json", "--anyway"];
        let replay: Value = serde_json::from_str(&stdout(&arguments)).unwrap();
        let check = &replay["check"];
        assert_eq!((&check["sender"], &check["others"][0]["sender"]), (&variant.into(), &other.into()), "{check}");
        assert_eq!((&check["holds"], &check["others"][0]["holds"]), (&true.into(), &false.into()), "{check}");
        assert!(replay["comparison"]["variants"][0]["goodput_mbit_s"]["mean"].is_number(), "{replay}");
    }
}

#[test]
fn a_replay_that_differs_from_the_capture_compares_nothing() {
    let capture = capture("two-paths-50ms", "sack", "sender");
    let arguments = ["replay", capture.name(), "--variants", "reknit", "--draws", "1", "--no-oracle"];
    let refused = |more: &[&str]| {
        let output = reknit(&[&arguments[..], &["--sender", "reknit"], more].concat());
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = refused(&[]);
    assert!(text.starts_with("check  NOT REPRODUCED: `reknit`, as given, differs in goodput"), "{text}");
    assert!(!text.contains("best ") && !text.contains("Means of") && text.contains("--anyway"), "{text}");
    let replay: Value = serde_json::from_str(&refused(&["--json"])).unwrap();
    assert!(replay["refused"].is_string() && replay["comparison"].is_null(), "{replay}");
    let text = stdout(&[&arguments[..], &["--sender", "reknit", "--anyway"]].concat());
    assert!(text.starts_with("check  NOT REPRODUCED") && text.contains("1 draw,"), "{text}");
    // A sender that fills a tenth of the link does not always show its rate, but the user may know it.
    let text = stdout(&[&arguments[..], &["--sender", "sack", "--rate", "10 Mbit/s"]].concat());
    assert!(text.contains("bottleneck 10.0 Mbit/s"), "{text}");
    assert!(text.contains("best   `reknit` with"), "{text}");
}

#[test]
fn no_variant_is_best_on_a_rate_that_is_only_a_lower_limit() {
    let capture = capture("two-paths-50ms", "sack", "sender");
    let arguments =
        ["replay", capture.name(), "--variants", "reknit", "--draws", "2", "--no-oracle", "--sender", "sack"];
    let output = reknit(&[&arguments[..], &["--json"]].concat());
    let replay: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(if replay["refused"].is_null() { 0 } else { 3 }), "{replay}");
    let is_least = replay["path"]["rate_is_least"].as_bool().unwrap();
    assert_eq!(replay["refused"].is_null() || replay["check"]["holds"] == false, !is_least, "{replay}");
    assert_eq!(replay["best"].is_null(), !replay["refused"].is_null(), "{replay}");
}

#[test]
fn wrong_input_is_refused_in_one_line() {
    let capture = capture("clean", "sack", "sender");
    let file = capture.name();
    for (arguments, says) in [
        (&["replay", file, "--sender", "linus"][..], "--sender: unknown variant `linus`"),
        (&["replay", file, "--variants", "nix"], "--variants: unknown variant `nix`"),
        (&["replay", file, "--stream", "7"], "--stream 7: "),
        (&["replay", "missing.pcap"], "missing.pcap: "),
    ] {
        let output = reknit(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(says), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_transfer_with_pauses_is_not_replayed() {
    // Twenty segments each second.
    let mut wire = Wire::opened(Headers::default());
    for i in 0..600_u32 {
        let ms = 100.0 + f64::from(i / 20) * 1000.0 + f64::from(i % 20);
        wire.data(ms, 0, 1 + i * 1000, 1000);
        wire.ack(ms + 50.0, 1, 1 + (i + 1) * 1000);
    }
    let capture = Temporary::new("pauses.pcap");
    std::fs::write(&capture.0, wire.file()).unwrap();
    let run = reknit(&["replay", capture.name(), "--quiet"]);
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(!run.status.success() && said.trim_end().lines().count() == 1, "{said}");
    assert!(said.contains("no data was in flight for 93 % of the time"), "{said}");
}
