//! Paths and variants that are changed on the command line, without a file.

use std::process::{Command, Output};

fn reknit(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reknit")).args(arguments).output().expect("the command runs")
}

fn stdout(arguments: &[&str]) -> String {
    let output = reknit(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The line with the error.
fn error(arguments: &[&str]) -> String {
    let output = reknit(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The goodput of each run, Mbit/s, by variant.
fn goodputs(more: &[&str]) -> Vec<(String, f64)> {
    let arguments = [&["compare", "--duration", "4s", "--seeds", "1", "--no-oracle", "--csv"], more].concat();
    let text = stdout(&arguments);
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let titles = lines.next().unwrap();
    let column = |name: &str| titles.iter().position(|title| *title == name).unwrap();
    let (variant, goodput) = (column("variant"), column("goodput_mbit_s"));
    lines.map(|cells| (cells[variant].to_owned(), cells[goodput].parse().unwrap())).collect()
}

#[test]
fn a_rate_a_delay_and_a_rule_of_netem_are_a_path() {
    let link = ["--rate", "4 Mbit/s", "--delay", "10ms", "--variants", "sack"];
    let [(_, plain)] = goodputs(&link)[..] else { panic!("one run") };
    assert!((3.0..4.0).contains(&plain), "{plain}");
    let [(_, jittered)] = goodputs(&[&link[..], &["--netem", "delay 10ms 9ms"]].concat())[..] else {
        panic!("one run")
    };
    assert!(jittered < 0.8 * plain, "{jittered} of {plain}");
    // They also limit a path that is given.
    let [(_, limited)] = goodputs(&["--path", "clean", "--rate", "1 Mbit/s", "--variants", "sack"])[..] else {
        panic!("one run")
    };
    assert!((0.7..1.0).contains(&limited), "{limited}");
    let refused = error(&["compare", "--path", "clean", "--netem", "delay soon"]);
    assert!(refused.starts_with("error: --netem 'delay soon': ") && refused.lines().count() == 1, "{refused}");
}

#[test]
fn a_parameter_of_a_variant_is_set() {
    let path = ["--path", "two-paths-50ms", "--variants"];
    let set = ["--set", "variant.loss_detector.reo_wnd_divisor=1"];
    let changed = goodputs(&[&path[..], &["rack"], &set].concat());
    assert_eq!(changed[0].0, "rack+reo_wnd_divisor-1");
    assert!((changed[0].1 - goodputs(&[&path[..], &["rack"]].concat())[0].1).abs() > 1e-6, "{changed:?}");
    let refused = error(&[&["compare"], &path[..], &["rack,linux"], &set].concat());
    assert!(refused.starts_with("error: variant `linux`: loss_detector.reo_wnd_divisor: "), "{refused}");
}

#[test]
fn a_printed_path_is_a_file() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("copy.toml");
    let name = file.to_str().unwrap();
    let measured = |path: &str| stdout(&["paths", path, "--json"]);
    std::fs::write(&file, stdout(&["paths", "survey", "--toml"])).unwrap();
    assert_eq!(measured(name), measured("survey"));
    std::fs::write(
        &file,
        stdout(&["paths", "survey", "--set", "forward.+={ kind = \"loss\", probability = 1 }", "--toml"]),
    )
    .unwrap();
    assert!(measured(name).contains("\"lost\": 20000"), "{}", measured(name));
}

#[test]
fn a_trace_of_mahimahi_is_a_link() {
    let temporary = tempfile::tempdir().unwrap();
    let trace = temporary.path().join("trace");
    // 1500 bytes every 4 ms are 3 Mbit/s.
    let times: Vec<String> = (1..=250).map(|n| (4 * n).to_string()).collect();
    std::fs::write(&trace, times.join("\n")).unwrap();
    let stage = format!("forward.+={{ kind = \"rate-trace\", file = {:?} }}", trace.to_str().unwrap());
    let [(_, goodput)] = goodputs(&["--path", "clean", "--variants", "sack", "--set", &stage])[..] else {
        panic!("one run")
    };
    assert!((2.4..3.0).contains(&goodput), "{goodput}");
    std::fs::write(&trace, "1\n2\n\n").unwrap();
    let refused = error(&["compare", "--path", "clean", "--set", &stage]);
    assert!(refused.contains("line 3: `` is not a whole number of milliseconds"), "{refused}");
}

#[test]
fn the_heading_of_a_comparison_says_what_options_change() {
    let options = ["--set", "forward.bottleneck.rate=2 Mbit/s", "--loss", "2%", "--delay", "1ms"];
    let base = ["compare", "--path", "rr-tcp", "--variants", "sack", "--seeds", "1", "--duration", "1s", "--no-oracle"];
    let heading = |options: &[&str]| {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_reknit")).args(base).args(options).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split("\n\n").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let changed = heading(&options);
    let says = "; changed: --set forward.bottleneck.rate=2 Mbit/s, --loss 2 %, --delay 1 ms; in order ";
    assert!(changed.contains(says), "{changed}");
    assert!(!heading(&[]).contains("changed"));
}
