//! What the command prints on success.

#[path = "results/files.rs"]
mod files;

use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reknit_testkit::machine;
use reknit_variants::FAMILIES;
use serde_json::Value;

fn reknit(arguments: &[&str], width: u32) -> String {
    output(Command::new(env!("CARGO_BIN_EXE_reknit")).args(arguments).env("COLUMNS", width.to_string()), arguments)
}

/// What it prints to a pipe.
fn piped(arguments: &[&str]) -> String {
    output(Command::new(env!("CARGO_BIN_EXE_reknit")).args(arguments).env_remove("COLUMNS"), arguments)
}

fn output(command: &mut Command, arguments: &[&str]) -> String {
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const COMPARE: &[&str] =
    &["compare", "--path", "rr-tcp", "--variants", "sack,rack", "--duration", "10 s", "--seeds", "2"];

/// What the command prints to standard error.
fn notes(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_reknit")).args(arguments).output().expect("the command runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).unwrap()
}

/// A file with this content.
fn file(name: &str, content: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("results-{name}.toml"));
    std::fs::write(&path, content).unwrap();
    path.to_string_lossy().into_owned()
}

fn with(more: &[&'static str]) -> Vec<&'static str> {
    COMPARE.iter().chain(more).copied().collect()
}

#[test]
fn tables_fit_the_terminal() {
    let sweep =
        file("wide", "path = \"rr-tcp\"\nduration = \"2 s\"\nvariant = \"sack\"\n[axes]\nloss = [0, \"1 %\"]\n");
    for width in [40, 60, 80, 120] {
        let of_width = [
            &with(&[])[..],
            &["sweep", &sweep],
            &["variants"],
            &["variants", "rack"],
            &["paths"],
            &["paths", "survey"],
        ];
        for arguments in of_width {
            let text = reknit(arguments, width);
            // Commands for copying are not folded.
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("reknit "));
            let longest = lines.map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(longest <= width as usize, "{arguments:?} at {width}: {longest} wide\n{text}");
            assert!(!text.contains('…'), "{arguments:?} at {width}: something is cut\n{text}");
        }
    }
}

/// The titles of the columns of a comparison.
const COLUMNS: [&str; 12] = [
    "variant",
    "Mbit/s",
    "of in-order",
    "of oracle",
    "retransmitted",
    "spurious",
    "window cuts (false)",
    "undone",
    "RTOs",
    "wait p50",
    "wait p99",
    "packets",
];

#[test]
fn columns_that_do_not_fit_are_named_below_the_table() {
    let whole = piped(&with(&[]));
    let head = whole.lines().find(|line| line.starts_with("variant")).unwrap();
    assert!(COLUMNS.iter().all(|column| head.contains(column)) && !whole.contains("Left out"), "{whole}");
    for width in [40, 60, 80, 120] {
        let text = reknit(&with(&[]), width).split_whitespace().collect::<Vec<_>>().join(" ");
        let start = format!("Left out to fit {width} characters, least important first: ");
        let table = &text[text.find("in order").unwrap()..text.find("Means of").unwrap()];
        let (shown, rest) = table.split_once(&start).unwrap_or((table, "."));
        let (left_out, _) = rest.split_once('.').unwrap();
        for column in COLUMNS {
            let is_shown = column.split(' ').all(|word| shown.contains(word));
            assert!(is_shown != left_out.split(", ").any(|title| title == column), "{column} at {width}: {text}");
        }
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
    assert_documented(&document);
}

#[test]
fn json_of_variants_has_the_documented_fields() {
    let document: Value = serde_json::from_str(&reknit(&["variants", "--json"], 80)).unwrap();
    assert_eq!(document["format"], "reknit-variants-1");
    assert_documented(&document);
    let variants = document["variants"].as_array().unwrap();
    let of = |name: &str| variants.iter().find(|variant| variant["name"] == name).unwrap();
    let parts = of("rack")["parts"].as_array().unwrap();
    assert_eq!((&parts[0]["seam"], &parts[0]["algorithm"]), (&"loss_detector".into(), &"rack".into()));
    let parameters = parts[0]["parameters"].as_array().unwrap();
    let delay = parameters.iter().find(|parameter| parameter["name"] == "max_ack_delay").unwrap();
    assert_eq!(delay["value"], "25 ms");
    let one: Value = serde_json::from_str(&reknit(&["variants", "rack-tlp", "--json"], 80)).unwrap();
    assert_eq!(one["variants"].as_array().unwrap(), &[of("rack").clone()]);
}

fn assert_documented(document: &Value) {
    let documentation = include_str!("../../../docs/reference/json.md");
    let mut keys = Vec::new();
    collect_keys(document, &mut keys);
    for key in keys {
        assert!(documentation.contains(&format!("`{key}`")), "docs/reference/json.md does not describe `{key}`");
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
fn the_share_of_what_is_possible_is_that_of_the_oracle() {
    let whole = piped(&with(&[]));
    assert!(whole.contains("of oracle"), "{whole}");
    for more in [&["--no-oracle"][..], &["--flows", "2"]] {
        let without = piped(&with(more));
        assert!(!without.contains("of oracle") && without.contains("of in-order"), "{more:?}: {without}");
        let document: Value = serde_json::from_str(&piped(&[&with(more)[..], &["--json"]].concat())).unwrap();
        let rows = document["variants"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["of_oracle"].is_null() && row["oracle_mbit_s"].is_null()), "{more:?}");
    }
    let csv =
        piped(&["compare", "--path", "rr-tcp", "--variants", "oracle", "--duration", "5 s", "--seeds", "1", "--csv"]);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][3..6], ["of_in_order", "of_oracle", "goodput_mbit_s"]);
    assert_eq!(lines[1][4], "1");
}

#[test]
fn the_same_seed_gives_the_same_results() {
    let run = || reknit(&with(&["--csv"]), 80);
    assert_eq!(run(), run());
}

#[test]
fn on_the_in_order_path_nothing_is_retransmitted() {
    let document: Value = serde_json::from_str(&reknit(&with(&["--in-order", "--json"]), 80)).unwrap();
    for row in document["variants"].as_array().unwrap() {
        assert!((row["of_in_order"].as_f64().unwrap() - 1.0).abs() < 0.01, "{row}");
        assert!(row["runs"].as_array().unwrap().iter().all(|run| run["retransmissions"]["total"] == 0));
    }
}

#[test]
fn captures_open_in_an_analyser() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capture.pcapng");
    let name = file.to_string_lossy().into_owned();
    reknit(&["compare", "--path", "rr-tcp", "--variants", "sack", "--duration", "5 s", "--pcap", &name], 80);
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a], "no pcapng");
    if machine::has(&["tshark"]) {
        let output = Command::new("tshark").arg("-r").arg(&file).stderr(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.lines().count() > 100, "{text}");
        assert!(text.contains("[SYN, ACK]") && !text.contains("Malformed"), "{text}");
    }
}

/// Output and number of finished runs of a comparison on two paths that was interrupted on the first one.
fn interrupted(more: &[&str]) -> (String, usize) {
    let arguments = ["compare", "--path", "rr-tcp,clean", "--variants", "sack,rack", "--duration", "20 s"];
    let child = Command::new(env!("CARGO_BIN_EXE_reknit"))
        .args([&arguments[..], &["--seeds", "10000", "--no-oracle"], more].concat())
        .env_remove("COLUMNS")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    let finished = told.strip_prefix("interrupted: showing the ").unwrap();
    let finished = finished.strip_suffix(" of 40000 runs that finished\n").unwrap().parse().unwrap();
    assert!(0 < finished && finished < 20_000, "{told}");
    (String::from_utf8(output.stdout).unwrap(), finished)
}

#[test]
fn ctrl_c_shows_the_finished_runs_and_no_others() {
    let (csv, finished) = interrupted(&["--csv"]);
    assert_eq!(csv.lines().count(), 1 + finished, "a head, and a line for each run");
    let (table, _) = interrupted(&[]);
    assert!(table.starts_with("rr-tcp: ") && !table.contains("clean: "), "{table}");
    assert!(table.contains(" of 10000  ") && table.contains("Means of the finished runs with"), "{table}");
}

#[test]
fn a_fallback_is_reported_in_one_line() {
    let arguments =
        ["compare", "--path", "clean", "--variants", "newreno,rack", "--duration", "2 s", "--set", "tcp.sack=false"];
    assert_eq!(
        notes(&arguments),
        "note: rack fell back: without SACK, losses are detected and repaired as in `newreno`, and spurious \
         retransmissions are not detected\n"
    );
    let document: Value = serde_json::from_str(&reknit(&[&arguments[..], &["--json"]].concat(), 80)).unwrap();
    let fell_back = |i: usize| document["variants"][i]["fell_back"].as_array().unwrap().len();
    assert_eq!((fell_back(0), fell_back(1)), (0, 1));
    assert_eq!(notes(&with(&[])), "");
}

#[test]
fn the_extension_selects_the_format_of_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let draw = |file: &str| {
        let file = folder.path().join(file);
        reknit(&["paths", "drop-bursts", "--plot", &file.to_string_lossy()], 80);
        std::fs::read(file).unwrap()
    };
    let svg = String::from_utf8(draw("path.SVG")).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    for text in ["drop-bursts", "one-way delay, ms", "sent at, s", "reordering extent (RFC 4737), packets", "lost"] {
        assert!(svg.lines().any(|line| line.trim() == text), "{text}");
    }
    let png = draw("path.png");
    assert!(png.starts_with(b"\x89PNG\r\n") && png == draw("again.png"));
    let size = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!((size(16), size(20)), (1800, 1720));
}

#[test]
fn several_paths_and_patterns() {
    let arguments = ["compare", "--path", "two-paths-*,clean", "--duration", "2 s", "--seeds", "2"];
    let variants = ["--variants", "rr-fa*,base"];
    let csv = piped(&[&arguments[..], &variants, &["--csv"]].concat());
    let mut paths: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    let mut names: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    paths.dedup();
    names.dedup();
    assert_eq!(paths, ["two-paths-50ms", "two-paths-200ms", "clean"]);
    assert_eq!(names[..7], ["rr-fa", "rr-fa-rtx", "rr-faes", "reno", "reno-nt4", "newreno", "sack"]);
    let document: Value = serde_json::from_str(&piped(&[&arguments[..], &variants, &["--json"]].concat())).unwrap();
    assert_documented(&document);
    assert_eq!(document["format"], "reknit-compare-paths-1");
    let one: Value = serde_json::from_str(&piped(&[
        "compare",
        "--path",
        "clean",
        "--duration",
        "2 s",
        "--seeds",
        "2",
        "--variants",
        "rr-fa*,base",
        "--json",
    ]))
    .unwrap();
    assert_eq!(document["paths"][2], one);
    let table = piped(&[&arguments[..], &variants].concat());
    assert_eq!(table.lines().filter(|line| line.starts_with("variant ")).count(), 3, "{table}");
}

#[test]
fn list_entries_can_be_set() {
    let goodput = |set: &[&str]| {
        let arguments =
            ["compare", "--path", "two-paths-50ms", "--variants", "sack", "--duration", "5 s", "--seeds", "1"];
        let text = piped(&[&arguments[..], set, &["--csv"]].concat());
        text.lines().nth(1).and_then(|line| line.split(',').nth(5)).unwrap().parse::<f64>().unwrap()
    };
    let reordered = goodput(&[]);
    let level = goodput(&["--set", "forward.paths.paths.1.delay=50ms"]);
    assert!(level > 2.0 * reordered, "{level} {reordered}");
}

#[test]
fn options_override_the_file_of_a_sweep() {
    let file = file(
        "overridden",
        "path = \"clean\"\nduration = \"1 s\"\nvariants = [\"sack\", \"rack\"]\n[axes]\nloss = [0, \"1 %\"]\n",
    );
    let options =
        ["--variants", "rr-fa,time", "--path", "two-paths-*", "--loss", "2%", "--duration", "2 s", "--seeds", "1"];
    let more = ["--set", "tcp.min_rto=300ms", "--phases", "fixed", "--flows", "2", "--csv"];
    let text = piped(&[&["sweep", file.as_str()], &options[..], &more].concat());
    let cells = |line: &str| line.split(',').take(3).map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().map(cells).collect();
    assert_eq!(lines[0], ["variant", "path", "seed"], "{text}");
    assert_eq!(lines[1], ["rr-fa", "two-paths-50ms", "1"]);
    assert_eq!(lines[2], ["rr-fa", "two-paths-200ms", "1"]);
    let of_time = reknit_variants::VARIANTS.iter().filter(|variant| variant.family().key == "time").count();
    assert_eq!(lines.len(), 1 + 2 * (1 + of_time), "{text}");
}

#[test]
fn a_single_run_has_a_summary_and_a_series() {
    let arguments = ["simulate", "--path", "rr-tcp", "--variant", "rack", "--duration", "5 s", "--seed", "2"];
    let text = reknit(&arguments, 80).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["rack on rr-tcp: ", "; seed 2, 5 s", "goodput ", "window cuts ", "round trip "] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let csv = piped(&[&arguments[..], &["--csv", "--sample-every", "500ms"]].concat());
    assert!(csv.starts_with("flow,time_s,phase,cwnd_bytes,"), "{csv}");
    assert_eq!(csv.lines().count(), 11, "{csv}");
    let document: Value =
        serde_json::from_str(&piped(&[&arguments[..], &["--json", "--sample-every", "1 s"]].concat())).unwrap();
    assert_documented(&document);
    assert_eq!(document["series"]["time_s"].as_array().unwrap().len(), 5);
    let compared =
        piped(&["compare", "--path", "rr-tcp", "--variants", "rack", "--duration", "5 s", "--seeds", "2", "--json"]);
    let compared: Value = serde_json::from_str(&compared).unwrap();
    assert_eq!(document["run"]["goodput_mbit_s"], compared["variants"][0]["runs"][1]["goodput_mbit_s"]);
}

#[test]
fn phases_are_drawn_unless_they_are_fixed() {
    let arguments = ["compare", "--path", "two-paths-200ms", "--variants", "newreno", "--duration", "20 s", "--csv"];
    let goodputs = |more: &[&str]| {
        let text = piped(&[&arguments[..], more].concat());
        let mut found: Vec<String> =
            text.lines().skip(1).map(|line| line.split(',').nth(5).unwrap().to_owned()).collect();
        found.sort();
        found.dedup();
        found.len()
    };
    assert_eq!(goodputs(&["--phases", "fixed"]), 1);
    assert!(goodputs(&[]) > 1);
}

#[test]
fn each_path_has_its_warning() {
    let arguments = ["compare", "--path", "clean,rr-tcp", "--variants", "sack", "--duration", "1 s", "--seeds", "1"];
    let told = notes(&[&arguments[..], &["--loss", "1"]].concat());
    let expected = ["clean", "rr-tcp"].map(|path| format!("warning: {path}: the loss is 100 %, so no data arrives\n"));
    assert_eq!(told, expected.concat());
}

#[test]
fn what_an_algorithm_shows_is_in_every_output() {
    const RATIO: &str = "dup_thresh.fa_ratio";
    let options = ["--path", "reordered-and-lossy", "--duration", "20 s"];
    let compare = |more: &[&str]| {
        let arguments = [&["compare", "--variants", "sack,rr-ta", "--seeds", "2"], &options[..], more].concat();
        reknit(&arguments, 80)
    };
    let document: Value = serde_json::from_str(&compare(&["--json"])).unwrap();
    let [sack, adaptive] = [0, 1].map(|i| &document["variants"][i]);
    assert_eq!((&sack["shown"], &sack["runs"][0]["shown"]), (&serde_json::json!({}), &serde_json::json!({})));
    let ratios = [0, 1].map(|i| adaptive["runs"][i]["shown"][RATIO].as_f64().unwrap());
    assert!(
        ratios.iter().all(|ratio| (0.0..0.99).contains(ratio)) && (ratios[0] - ratios[1]).abs() > 1e-9,
        "{ratios:?}"
    );
    let mean = adaptive["shown"][RATIO].as_f64().unwrap();
    assert!((mean - f64::midpoint(ratios[0], ratios[1])).abs() < 1e-12, "{mean} of {ratios:?}");
    // The numbers have a column, which is empty for variants that do not show them.
    let column = |csv: &str| {
        let position = csv.lines().next().unwrap().split(',').position(|title| title == RATIO).unwrap();
        csv.lines().skip(1).map(|line| line.split(',').nth(position).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(column(&compare(&["--csv"])), ["", "", &ratios[0].to_string(), &ratios[1].to_string()]);
    // Over time: the series ends with the number of the run.
    let simulate = |more: &[&str]| reknit(&[&["simulate", "--variant", "rr-ta"], &options[..], more].concat(), 80);
    assert_eq!(column(&simulate(&["--csv"])).last(), Some(&ratios[0].to_string()));
    assert!(simulate(&[]).contains(&format!("{RATIO} ")), "{}", simulate(&[]));
    let run: Value = serde_json::from_str(&simulate(&["--json"])).unwrap();
    assert_eq!(run["run"]["shown"][RATIO], ratios[0]);
    let over_time = &run["run"]["measured"]["shown"][RATIO];
    assert!(over_time["mean"].as_f64().unwrap() > 0.0 && over_time["std"].as_f64().unwrap() > 0.0, "{over_time}");
}

#[test]
fn sweeps_resume_from_their_store() {
    let axes = "path = \"rr-tcp\"\nduration = \"2 s\"\nseeds = 2\nvariant = \"sack\"\n[axes]\nloss = [0, \"1 %\"]\n";
    let file = file("sweep", axes);
    let store = tempfile::tempdir().unwrap();
    let stored = || {
        let files =
            std::fs::read_dir(store.path()).unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        files
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|line| !line.is_empty())
            .count()
    };
    let sweep = |more: &[&str]| {
        let arguments = ["sweep", file.as_str(), "--store", store.path().to_str().unwrap()];
        reknit(&[&arguments, more].concat(), 80)
    };
    let table = sweep(&[]);
    assert!(table.starts_with("loss  "), "{table}");
    let rows = table.lines().take_while(|line| !line.is_empty()).count();
    assert_eq!((rows, stored()), (3, 4), "a head, and a row for each point: {table}");
    let csv = sweep(&["--csv"]);
    assert_eq!((csv.lines().count(), stored()), (5, 4), "{csv}");
    assert_eq!(sweep(&["--seeds", "3", "--csv"]).lines().count(), 7);
    assert_eq!(stored(), 6);
    let document: Value = serde_json::from_str(&sweep(&["--json"])).unwrap();
    assert_eq!((&document["format"], &document["complete"]), (&Value::from("reknit-sweep-1"), &Value::from(true)));
    assert_eq!(document["points"][2]["at"]["loss"], "1 %");
    let compare = "compare --path rr-tcp --variants sack --duration 2s --seeds 2 --loss 1% --json";
    let compared = reknit(&compare.split(' ').collect::<Vec<_>>(), 80);
    let compared: Value = serde_json::from_str(&compared).unwrap();
    let mut run = document["points"][3]["run"].clone();
    for only_of_single_runs in ["measured", "run_length_mean_packets"] {
        assert!(!run[only_of_single_runs].take().is_null(), "{only_of_single_runs}");
    }
    for group in run["groups"].as_array_mut().unwrap() {
        assert!(!group["measured"].take().is_null());
    }
    assert_eq!(run, compared["variants"][0]["runs"][1]);
}
