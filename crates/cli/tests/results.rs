//! What the command prints when all is well.

use std::process::{Command, Stdio};

use serde_json::Value;

fn reknit(arguments: &[&str], width: u32) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_reknit"))
        .args(arguments)
        .env("COLUMNS", width.to_string())
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const COMPARE: &[&str] =
    &["compare", "--path", "rr-tcp", "--variants", "sack,rack", "--duration", "10 s", "--seeds", "2"];

fn with(more: &[&'static str]) -> Vec<&'static str> {
    COMPARE.iter().chain(more).copied().collect()
}

#[test]
fn tables_fit_the_terminal() {
    for width in [60, 80, 140] {
        for arguments in [&with(&[])[..], &["variants"], &["paths"], &["paths", "survey"], &["variants", "rack"]] {
            let text = reknit(arguments, width);
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(longest <= width as usize, "{arguments:?} at {width}: {longest} wide\n{text}");
        }
    }
    let wide = reknit(&with(&[]), 140);
    for column in ["Mbit/s", "of in-order", "needlessly", "window cuts (false)", "RTOs", "wait p99", "packets"] {
        assert!(wide.contains(column), "{column}\n{wide}");
    }
}

#[test]
fn json_has_the_documented_fields() {
    let document: Value = serde_json::from_str(&reknit(&with(&["--json"]), 80)).unwrap();
    assert_eq!(document["format"], "reknit-compare-1");
    assert_eq!((&document["path"], &document["complete"]), (&Value::from("rr-tcp"), &Value::from(true)));
    let variants = document["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 2);
    for row in variants {
        assert_eq!(row["runs"].as_array().unwrap().len(), 2);
        assert!(row["goodput_mbit_s"]["mean"].as_f64().unwrap() > 0.0);
    }
    let documentation = include_str!("../../../docs/json.md");
    let mut keys = Vec::new();
    collect_keys(&document, &mut keys);
    for key in keys {
        assert!(documentation.contains(&format!("`{key}`")), "docs/json.md does not tell of `{key}`");
    }
}

fn collect_keys(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                into.push(key.clone());
                collect_keys(value, into);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect_keys(value, into)),
        _ => {}
    }
}

#[test]
fn csv_has_a_line_for_each_run() {
    let text = reknit(&with(&["--csv"]), 80);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5);
    let fields = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == fields));
    assert!(lines[1].starts_with("rr-tcp,sack,1,"));
}

#[test]
fn the_same_seed_gives_the_same_results() {
    let run = || reknit(&with(&["--csv"]), 80);
    assert_eq!(run(), run());
}

#[test]
fn in_order_nothing_is_resent() {
    let document: Value = serde_json::from_str(&reknit(&with(&["--in-order", "--json"]), 80)).unwrap();
    for row in document["variants"].as_array().unwrap() {
        assert!((row["of_in_order"].as_f64().unwrap() - 1.0).abs() < 0.01, "{row}");
        assert!(row["runs"].as_array().unwrap().iter().all(|run| run["retransmissions"]["total"] == 0));
    }
}

#[test]
fn captures_open_in_an_analyser() {
    let file = std::env::temp_dir().join(format!("reknit-{}.pcapng", std::process::id()));
    let name = file.to_string_lossy().into_owned();
    reknit(&["compare", "--path", "rr-tcp", "--variants", "sack", "--duration", "5 s", "--pcap", &name], 80);
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a], "no pcapng");
    let tshark = Command::new("tshark").arg("-r").arg(&file).stderr(Stdio::null()).output();
    match tshark {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.lines().count() > 100, "{text}");
            assert!(text.contains("[SYN, ACK]") && !text.contains("Malformed"), "{text}");
        }
        Err(_) => assert!(std::env::var_os("CI").is_none(), "CI must have tshark"),
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn ctrl_c_shows_what_is_finished() {
    let child = Command::new(env!("CARGO_BIN_EXE_reknit"))
        .args([
            "compare",
            "--path",
            "clean",
            "--variants",
            "sack,rack",
            "--duration",
            "20 min",
            "--seeds",
            "1000",
            "--csv",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("path,variant,seed,"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted: "), "{output:?}");
}
