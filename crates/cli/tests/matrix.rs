//! `reknit matrix` without live runs.

use std::process::{Command, Output};

use serde_json::Value;

const MATRIX: [&str; 7] = ["matrix", "--variants", "sack,pr", "--duration", "2 s", "--seeds", "2"];

fn matrix(more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reknit")).args(MATRIX).args(more).env("COLUMNS", "120").output().unwrap()
}

fn stdout(more: &[&str]) -> String {
    let output = matrix(more);
    assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn written_paths_give_the_same_results_as_drawn_ones() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().to_str().unwrap();
    stdout(&["--seed", "3,4", "--paths", "3", "--write", folder]);
    let drawn = stdout(&["--seed", "3,4", "--paths", "3", "--csv"]);
    assert_eq!(stdout(&["--paths-from", folder, "--csv"]), drawn);
    assert_eq!(drawn.lines().count(), 1 + 6 * 2 * 2, "{drawn}");
}

#[test]
fn lossless_and_lossy_paths_are_reported_separately() {
    let table = stdout(&["--paths", "12"]);
    let numbers: Vec<u32> = table
        .lines()
        .filter_map(|line| line.split_once(" paths with").map(|(number, _)| number.parse().unwrap()))
        .collect();
    assert_eq!((numbers.len(), numbers.iter().sum::<u32>()), (2, 12), "{table}");
    let lossless: Value = serde_json::from_str(&stdout(&["--paths", "12", "--lossless", "--json"])).unwrap();
    let paths = lossless["paths"].as_array().unwrap();
    assert_eq!(paths.len() as u32, numbers[0]);
    assert!(paths.iter().all(|path| path["lossy"] == false));
    for shares in lossless["summary"].as_array().unwrap() {
        for share in ["of_in_order", "of_oracle"] {
            let value = |key: &str| shares[share][key].as_f64().unwrap();
            assert!(0.0 < value("min") && value("min") <= value("median"), "{shares}");
            assert!(value("ci95") > 0.0, "{shares}");
        }
    }
    let [pair] = &lossless["differences"].as_array().unwrap()[..] else { panic!("{lossless}") };
    assert_eq!((&pair["variant"], &pair["than"]), (&"pr".into(), &"sack".into()));
    let mean = |variant: &str| {
        let summary = lossless["summary"].as_array().unwrap();
        summary.iter().find(|shares| shares["variant"] == variant).unwrap()["of_in_order"]["mean"].as_f64().unwrap()
    };
    assert!((pair["mean"].as_f64().unwrap() - (mean("pr") - mean("sack"))).abs() < 1e-9, "{pair}");
    assert!(table.contains("minus sack") && table.contains("better, worse"), "{table}");
}

#[test]
fn a_store_keeps_finished_runs() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().to_str().unwrap();
    let first = stdout(&["--paths", "2", "--store", folder, "--json"]);
    let file = format!("{folder}/matrix.jsonl");
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(kept.lines().count(), 2 * 2 * 5, "two paths, two seeds: three references, two variants");
    // A run whose line is incomplete is repeated; the others are not.
    std::fs::write(&file, &kept[..kept.len() - 9]).unwrap();
    assert_eq!(stdout(&["--paths", "2", "--store", folder, "--json"]), first);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), kept.lines().count() + 1);
}

#[test]
fn options_that_cannot_work_are_refused() {
    for (more, message) in [
        (&["--variants", "kernel:cubic"][..], "--variants kernel:cubic: kernels run only with --live (as root)"),
        (&["--variants", "nosuch"], "--variants: "),
        (&["--paths-from", "/nowhere"], "/nowhere: No such file or directory"),
        (&["--paths-from", "x", "--seed", "1"], "cannot be used with"),
        (&["--lossy", "--lossless"], "cannot be used with"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_reknit")).arg("matrix").args(more).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {stderr}");
        assert!(stderr.contains(message), "{more:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn patterns_and_families_stand_for_their_variants() {
    let json = |variants: &str| -> Value {
        let arguments =
            ["matrix", "--paths", "1", "--duration", "1 s", "--seeds", "1", "--json", "--variants", variants];
        let output = Command::new(env!("CARGO_BIN_EXE_reknit")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let variants = |json: &Value| -> Vec<String> {
        let runs = json["runs"].as_array().unwrap();
        runs.iter()
            .map(|run| run["variant"].as_str().unwrap().to_owned())
            .filter(|name| name.starts_with("rr-"))
            .collect()
    };
    let family = variants(&json("sack,family:threshold"));
    assert!(family.len() >= 3, "{family:?}");
    assert_eq!(variants(&json("rr-*")).len(), variants(&json("rr-*,rr-fa")).len());
}
