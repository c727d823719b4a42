//! The table, the JSON document, the comments and the page say the same about the same capture.

mod common;
#[expect(dead_code, reason = "only the captures of incidents are needed")]
#[path = "../../trace/tests/wire/mod.rs"]
mod wire;

use std::collections::BTreeMap;
use std::process::Command;

use reknit_trace::Incident;
use serde_json::Value;

use common::{Temporary, stdout};
use wire::incidents::capture_of;

/// Kinds of verdicts: in JSON, and in the points of the page.
const KINDS: [(&str, &str); 6] = [
    ("lost", "lost"),
    ("reordered", "reordered"),
    ("duplicated", "copied"),
    ("spurious", "spurious"),
    ("discarded", "discarded"),
    ("cannot_tell", "unknown"),
];
/// The beginnings of the comments on packets of each kind.
const COMMENTS: [(&str, &[&str]); 6] = [
    ("lost", &["reknit: lost", "reknit: replaces a lost packet"]),
    ("reordered", &["reknit: late, not lost"]),
    ("duplicated", &["reknit: the network duplicated", "reknit: a duplicate made by the network"]),
    ("spurious", &["reknit: spurious retransmission"]),
    ("discarded", &["reknit: the receiver did not keep"]),
    ("cannot_tell", &["reknit: cannot tell"]),
];

type Counts = BTreeMap<&'static str, u64>;

fn of_json(direction: &Value) -> Counts {
    KINDS.iter().map(|(kind, _)| (*kind, direction["verdicts"][kind].as_u64().unwrap())).collect()
}

fn number(cell: &str) -> u64 {
    cell.replace(',', "").parse().unwrap_or_else(|_| panic!("{cell} is no number"))
}

/// The row of a direction in the table. Cells between these columns may be empty.
fn of_table(text: &str, from: &str) -> Counts {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.clone().find(|row| row.len() > 12 && row[1] == from && row[0].parse::<u32>().is_ok());
    let row = row.unwrap_or_else(|| panic!("no row of {from}: {text}"));
    let last = |n: usize| number(row[row.len() - n]);
    Counts::from([
        ("lost", number(row[6])),
        ("reordered", number(row[7])),
        ("duplicated", last(6)),
        ("discarded", last(5)),
        ("spurious", last(4)),
        ("cannot_tell", last(3)),
    ])
}

fn of_page(drawing: &Value) -> Counts {
    KINDS.iter().map(|(kind, points)| (*kind, drawn(&drawing[points]))).collect()
}

/// Packets of all points of a kind.
fn drawn(points: &Value) -> u64 {
    let count = |points: &Value| points.as_array().map(|counts| counts.iter().filter_map(Value::as_u64).sum::<u64>());
    count(&points["count"]).unwrap_or_else(|| points["at"].as_array().unwrap().len() as u64)
}

fn of_comments(file: &[u8]) -> Counts {
    COMMENTS.iter().map(|(kind, texts)| (*kind, texts.iter().map(|text| times(text, file)).sum())).collect()
}

fn times(text: &str, file: &[u8]) -> u64 {
    file.windows(text.len()).filter(|window| *window == text.as_bytes()).count() as u64
}

/// What `analyze` says about a capture.
struct Outputs {
    text: String,
    json: Value,
    html: String,
    /// The data of the plots on the page.
    drawings: Value,
    /// The copy with comments.
    comments: Vec<u8>,
}

impl Outputs {
    fn of(capture: &Temporary) -> Outputs {
        let (page, copy) = (Temporary::new("page.html"), Temporary::new("copy.pcapng"));
        let run = Command::new(env!("CARGO_BIN_EXE_reknit"))
            .args(["analyze", capture.name(), "--html", page.name(), "--annotate", copy.name()])
            .env("COLUMNS", "400")
            .output()
            .unwrap();
        let text = String::from_utf8(run.stdout).unwrap();
        let json: Value = serde_json::from_str(&stdout(&["analyze", capture.name(), "--json"])).unwrap();
        let html = std::fs::read_to_string(&page.0).unwrap();
        let (_, data) = html.split_once("id=\"data\">").unwrap();
        let drawings: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
        Outputs { text, json, drawings, html, comments: std::fs::read(&copy.0).unwrap() }
    }
}

fn check(path: &str, variant: &str, side: &str) -> Counts {
    let Outputs { text, json, drawings, comments, .. } = Outputs::of(&Temporary::capture(path, variant, side, "6 s"));
    let mut all = Counts::new();
    for (direction, drawing) in json["directions"].as_array().unwrap().iter().zip(drawings.as_array().unwrap()) {
        let counts = of_json(direction);
        let from = direction["from"].as_str().unwrap();
        assert_eq!(of_table(&text, from), counts, "{path}, {variant}, {side}: the table, {from}");
        assert_eq!(of_page(drawing), counts, "{path}, {variant}, {side}: the page, {from}");
        let incidents = direction["incidents"].as_array().unwrap().iter().filter_map(|i| i["times"].as_u64());
        assert_eq!(drawn(&drawing["incident"]), incidents.sum::<u64>(), "{path}, {variant}, {side}: incidents");
        for (kind, count) in counts {
            *all.entry(kind).or_default() += count;
        }
    }
    assert_eq!(of_comments(&comments), all, "{path}, {variant}, {side}: the comments");
    all
}

#[test]
fn four_outputs_agree_on_every_kind() {
    let mut all = Counts::new();
    for (path, variant) in [
        ("two-paths-50ms", "sack"),
        ("lossy", "linux"),
        ("reordered-and-lossy", "rack"),
        ("duplicates", "sack"),
        ("bursty-loss", "bbr1"),
        ("random-delay", "newreno"),
    ] {
        for side in ["sender", "receiver"] {
            for (kind, count) in check(path, variant, side) {
                *all.entry(kind).or_default() += count;
            }
        }
    }
    for kind in ["lost", "reordered", "duplicated", "spurious"] {
        assert!(all[kind] > 10, "too few {kind}: {all:?}");
    }
}

#[test]
fn four_outputs_agree_on_each_kind_of_incident() {
    for what in Incident::ALL {
        let (wire, capture) = (capture_of(what), Temporary::new("capture.pcap"));
        std::fs::write(&capture.0, wire.file()).unwrap();
        let Outputs { text, json, html, drawings, comments } = Outputs::of(&capture);
        let (analysis, _) = wire.analyze();
        let incidents = &analysis.directions[0].incidents;
        let told = json["directions"][0]["incidents"].as_array().unwrap();
        let kinds: Vec<(&str, u64)> =
            told.iter().map(|told| (told["what"].as_str().unwrap(), told["times"].as_u64().unwrap())).collect();
        let expected: Vec<_> = incidents.iter().map(|incident| (incident.what.name(), incident.times)).collect();
        assert_eq!(kinds, expected, "{what:?}: JSON");
        assert!(kinds.contains(&(what.name(), 1)), "{what:?}: {kinds:?}");
        assert_eq!(drawings.as_array().unwrap().len(), analysis.directions.len(), "{what:?}: plots");
        let all = kinds.iter().map(|(_, times)| times).sum::<u64>();
        assert_eq!(drawn(&drawings[0]["incident"]), all, "{what:?}: the page's plot");
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for incident in incidents {
            let words = incident.text();
            assert!(line.contains(&words), "{what:?}: {words}: {text}");
            let row = format!("<tr><th scope=\"row\">{words}</th><td>{}</td></tr>", incident.times);
            assert!(html.contains(&row), "{what:?}: no {row}");
            assert_eq!(times(&format!("reknit: {words}"), &comments), incident.times, "{what:?}: comments, {words}");
        }
    }
}
