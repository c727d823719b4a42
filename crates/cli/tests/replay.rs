//! `reknit replay` on captures of simulated connections, whose path is known.

mod common;

use serde_json::Value;

use common::{Temporary, reknit, stdout};

fn capture(path: &str, variant: &str, side: &str) -> Temporary {
    Temporary::capture(path, variant, side, "6 s")
}

#[test]
fn the_path_is_found_and_the_replay_reproduces_the_capture() {
    for side in ["sender", "receiver"] {
        // In less time, slow start decides, and `bbr1` would fit a capture at the receiver as well.
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
        let check = &replay["check"];
        assert_eq!((&check["sender"], &check["holds"]), (&"linux".into(), &true.into()), "{side}: {check}");
        // SACK reaches a tenth of that on this path.
        let goodput = |n: usize| replay["comparison"]["variants"][n]["goodput_mbit_s"]["mean"].as_f64().unwrap();
        assert!(goodput(1) < goodput(0) / 3.0, "{side}: {} {}", goodput(0), goodput(1));
    }
}

#[test]
fn a_replay_that_differs_from_the_capture_says_so_first() {
    let capture = capture("two-paths-50ms", "sack", "sender");
    let arguments = ["replay", capture.name(), "--variants", "reknit", "--draws", "1", "--no-oracle"];
    let text = stdout(&[&arguments[..], &["--sender", "reknit"]].concat());
    assert!(text.starts_with("check  NOT REPRODUCED, so do not trust what follows"), "{text}");
    // A sender that fills a tenth of the link does not always show its rate, but the user may know it.
    let text = stdout(&[&arguments[..], &["--sender", "sack", "--rate", "10 Mbit/s"]].concat());
    assert!(text.contains("bottleneck 10.0 Mbit/s"), "{text}");
    assert!(text.contains("best   `reknit` with"), "{text}");
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
