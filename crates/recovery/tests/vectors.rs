//! The vectors in `vectors/`: calls and their results. The format is described in `ALGORITHM.md`. With `UPDATE_VECTORS=1` in the
//! environment, the results in the files are replaced.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use reknit_recovery::{Config, Decision, Nanos, Recovery, Rtt};

/// A time or number; `None` is `-`.
fn shown(value: Option<u64>) -> String {
    value.filter(|value| *value < u64::MAX).map_or("-".to_owned(), |value| value.to_string())
}

fn decision(decision: &Decision) -> String {
    let undone: String = decision.undone().iter().fold(String::new(), |mut text, event| {
        write!(text, " {event}").unwrap();
        text
    });
    format!("reduce {} next {} undone{undone}", shown(decision.reduce), shown(Some(decision.next.0)))
}

/// Makes a call. Returns its result, if it has one.
fn call(recovery: &mut Recovery, name: &str, arguments: &[u64]) -> Option<String> {
    let time = |i: usize| Nanos(arguments[i]);
    match name {
        "new" => *recovery = Recovery::with(Config { granularity: time(0), max_wait: arguments[1] as u32 }),
        "new_path" => *recovery = recovery.on_new_path(),
        "sent" => (arguments[0]..=arguments[1]).for_each(|number| recovery.on_sent(number)),
        "range" => recovery.on_acked_range(time(0), arguments[1], arguments[2]),
        "acked" => (arguments[1]..=arguments[2]).for_each(|number| recovery.on_acked(time(0), number)),
        "rtt" => recovery.on_rtt(Rtt { smoothed: time(0), latest: time(1) }),
        "lost" => recovery.on_lost(time(0), arguments[1]),
        "settle" => recovery.settle(),
        "loss_time" => return Some(shown(Some(recovery.loss_time(arguments[0], time(1)).0))),
        "decide" => return Some(decision(&recovery.decide(time(0)))),
        "marked" => return Some(u8::from(recovery.on_marked(arguments[0])).to_string()),
        "wait" => return Some(shown(recovery.wait().map(|wait| wait.0))),
        "undecided" => return Some(u8::from(recovery.is_undecided()).to_string()),
        _ => panic!("no such call: {name}"),
    }
    None
}

/// The text with the results that the calls have.
fn with_results(text: &str) -> String {
    let mut recovery = Recovery::new();
    let mut result = String::new();
    for line in text.lines() {
        let made = line.split(" = ").next().unwrap_or_default().trim_end_matches(" =");
        let mut words = made.split('#').next().unwrap_or_default().split_whitespace();
        let answer = words.next().and_then(|name| {
            let arguments: Vec<u64> = words.map(|word| word.parse().expect(line)).collect();
            call(&mut recovery, name, &arguments)
        });
        match answer {
            Some(answer) => writeln!(result, "{made} = {answer}").unwrap(),
            None => writeln!(result, "{line}").unwrap(),
        }
    }
    result
}

#[test]
fn the_vectors_hold() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let result = with_results(&text);
        if std::env::var_os("UPDATE_VECTORS").is_some() {
            fs::write(&file, result).unwrap();
            continue;
        }
        for (i, (has, expected)) in result.lines().zip(text.lines()).enumerate() {
            assert_eq!(has, expected, "{}, line {}", file.display(), i + 1);
        }
    }
}
