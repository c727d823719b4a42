//! Reads a script, line by line.

use reknit_config::{did_you_mean, read, unknown};
use reknit_tcp::Config;
use reknit_units::Duration;

use crate::run::time_text;
use crate::{CALLS, Call, Event, Line, STATES, Script, ScriptError, Value, Variable, notation};

/// What can begin an event.
const EVENTS: &str = "`>` (the connection sends), `<` (the peer sends), a call (listen, connect, write, read, close, \
                      abort), `check` or `nothing`";

/// The units of times.
const UNITS: [&str; 5] = ["ns", "us", "ms", "s", "min"];

/// The phases of loss recovery.
const PHASES: [&str; 4] = ["open", "disorder", "recovery", "loss"];
/// Why a connection ended.
const REASONS: [&str; 6] = ["no", "finished", "refused", "reset", "timed-out", "aborted"];

/// Reads the script in `text`; `file` is the name of its file.
///
/// # Errors
/// Names the line, what is wrong, and what is allowed.
pub fn parse(file: &str, text: &str) -> Result<Script, ScriptError> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let name = name.strip_suffix(".script").unwrap_or(name).to_owned();
    let mut script = Script {
        name,
        about: Vec::new(),
        variant: "sack".to_owned(),
        config: Config::default(),
        options: Vec::new(),
        lines: Vec::new(),
    };
    let mut options = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let refuse = |message: String| ScriptError { file: file.to_owned(), line: number, message };
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            if script.lines.is_empty() {
                script.about.push(comment.trim().to_owned());
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        match line.split_once(char::is_whitespace) {
            Some(("variant", name)) if script.lines.is_empty() => {
                let known = reknit_variants::find(name.trim()).map_err(|error| refuse(error.to_string()))?;
                known.name.clone_into(&mut script.variant);
            }
            Some(("tcp", option)) if script.lines.is_empty() => options.push((number, option.trim().to_owned())),
            Some(("variant" | "tcp", _)) => {
                return Err(refuse("options and the variant stand before the first event".to_owned()));
            }
            _ => {
                let before = script.lines.last().map_or(Duration::ZERO, |line| line.at);
                let (at, event) = read_event(line, before).map_err(refuse)?;
                script.lines.push(Line { number, at, event });
            }
        }
    }
    script.config = read_options(file, &options)?;
    script.options = options.iter().filter_map(|(_, o)| Some(o.split('=').next()?.trim().to_owned())).collect();
    if script.lines.is_empty() {
        let message = format!("no event; each line begins with an optional time and then {EVENTS}");
        return Err(ScriptError { file: file.to_owned(), line: text.lines().count().max(1), message });
    }
    Ok(script)
}

/// The options of the connection. The first wrong one is named.
fn read_options(file: &str, options: &[(usize, String)]) -> Result<Config, ScriptError> {
    let mut config = Config::default();
    let mut so_far = String::new();
    for (line, option) in options {
        so_far.push_str(option);
        so_far.push('\n');
        let refuse = |message: String| ScriptError { file: file.to_owned(), line: *line, message };
        let table: toml::Table = so_far.parse().map_err(|error: toml::de::Error| {
            refuse(format!("tcp {option}: {}", error.message().replace('\n', ", ")))
        })?;
        config = read(table).map_err(|error| refuse(format!("tcp {error}")))?;
    }
    if let Err(error) = config.check() {
        let line = options.last().map_or(1, |(line, _)| *line);
        return Err(ScriptError { file: file.to_owned(), line, message: format!("tcp {error}") });
    }
    Ok(config)
}

/// The time and the event of a line.
fn read_event(line: &str, before: Duration) -> Result<(Duration, Event), String> {
    let (first, rest) = split_time(line);
    if first.is_empty() {
        return Ok((before, read_action(rest)?));
    }
    let relative = first.strip_prefix('+');
    let time: Duration = relative.unwrap_or(first).parse().map_err(|error| format!("time {error}"))?;
    let at = if relative.is_some() { before + time } else { time };
    if at < before {
        return Err(format!("time {} lies before {}, the time of the line before", time_text(at), time_text(before)));
    }
    Ok((at, read_action(rest.trim())?))
}

/// The time of a line, which may have a space before its unit, and the rest. The time is empty if there is none.
pub(crate) fn split_time(line: &str) -> (&str, &str) {
    let has_time = line.strip_prefix('+').unwrap_or(line).starts_with(|c: char| c.is_ascii_digit());
    if !has_time {
        return ("", line);
    }
    let end = |text: &str| text.find(char::is_whitespace).unwrap_or(text.len());
    let number = end(line);
    let space = line[number..].len() - line[number..].trim_start().len();
    let unit = &line[number + space..];
    let unit = &unit[..end(unit)];
    let is_bare = line[..number].ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let end = if is_bare && UNITS.contains(&unit) { number + space + unit.len() } else { number };
    (&line[..end], line[end..].trim_start())
}

fn read_action(text: &str) -> Result<Event, String> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match word {
        ">" => Ok(Event::Sends(notation::read(rest)?)),
        "<" => {
            let pattern = notation::read(rest)?;
            if pattern.absent != notation::Fields::default() {
                return Err("`without` is only for segments that the connection sends".to_owned());
            }
            Ok(Event::Gets(pattern.segment))
        }
        "check" => read_check(rest),
        "nothing" if rest.is_empty() => Ok(Event::Nothing),
        _ if CALLS.contains(&word) => read_call(word, rest).map(Event::Call),
        _ => {
            let known = CALLS.iter().copied().chain(["check", "nothing"]);
            let near = did_you_mean(word, known);
            let then = if near.is_empty() { "; an" } else { " An" };
            Err(format!("`{text}` is not an event{near}{then} event begins with {EVENTS}"))
        }
    }
}

fn read_call(word: &str, rest: &str) -> Result<Call, String> {
    let bytes = || rest.parse().map_err(|_| format!("{word} `{rest}`: must be a number of bytes"));
    let plain = |call| if rest.is_empty() { Ok(call) } else { Err(format!("{word} takes no argument, not `{rest}`")) };
    match word {
        "listen" => plain(Call::Listen),
        "connect" => plain(Call::Connect),
        "write" => Ok(Call::Write(bytes()?)),
        "read" => Ok(Call::Read(bytes()?)),
        "close" => plain(Call::Close),
        _ => plain(Call::Abort),
    }
}

fn read_check(text: &str) -> Result<Event, String> {
    let (name, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let known = Variable::ALL.iter().map(|(name, _)| *name);
    let Some((_, variable)) = Variable::ALL.iter().find(|(known, _)| *known == name) else {
        let all: Vec<&str> = known.clone().collect();
        let all = unknown(&format!("check `{name}`: unknown variable"), name, &all);
        return Err(all);
    };
    Ok(Event::Check(*variable, read_value(*variable, value.trim()).map_err(|error| format!("check {name} {error}"))?))
}

fn read_value(variable: Variable, text: &str) -> Result<Value, String> {
    let word = |allowed: &[&'static str]| {
        let found = allowed.iter().find(|word| **word == text);
        found.map(|word| Value::Word(word)).ok_or_else(|| format!("`{text}`: must be {}", allowed.join(", ")))
    };
    match variable {
        Variable::State => word(&STATES.map(|(name, _)| name)),
        Variable::Phase => word(&PHASES),
        Variable::Closed => word(&REASONS),
        Variable::Sack | Variable::Timestamps | Variable::Ecn => word(&["on", "off"]),
        Variable::Ssthresh | Variable::Srtt if text == "none" => Ok(Value::Word("none")),
        Variable::Srtt | Variable::Rto => text.parse().map(Value::Time).map_err(|error| format!("{error}")),
        _ => text.parse().map(Value::Number).map_err(|_| format!("`{text}`: must be a number of bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse("x.script", text).unwrap_err().to_string()
    }

    #[test]
    fn times_are_absolute_relative_or_the_same() {
        let script = parse("a/b.script", "# what\n\n10 ms listen\n close\n+5 ms abort\n1.5s nothing\n").unwrap();
        let times: Vec<u64> = script.lines.iter().map(|line| line.at.as_millis()).collect();
        assert_eq!((script.name.as_str(), times), ("b", vec![10, 10, 15, 1500]));
        assert_eq!((script.about, script.lines[0].number), (vec!["what".to_owned()], 3));
    }

    #[test]
    fn options_are_those_of_the_engine() {
        let script = parse("x", "variant rack-tlp\ntcp sack = false\ntcp min_rto = '200 ms'\nconnect\n").unwrap();
        assert_eq!((script.variant.as_str(), script.config.sack), ("rack", false));
        assert_eq!(
            (script.config.min_rto, script.options),
            (Duration::from_millis(200), vec!["sack".into(), "min_rto".into()])
        );
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        for (text, expected) in [
            (
                "connect\n5ms conect\n",
                "x.script:2: `conect` is not an event; did you mean `connect`? An event begins with",
            ),
            ("10ms connect\n5ms close\n", "x.script:2: time 5ms lies before 10ms"),
            ("5 connect\n", "x.script:1: time `5` is not a duration"),
            ("5 ms\n", "x.script:1: `` is not an event"),
            ("5 hours close\n", "x.script:1: time `5` is not a duration"),
            ("write lots\n", "x.script:1: write `lots`: must be a number of bytes"),
            ("close now\n", "x.script:1: close takes no argument, not `now`"),
            ("check cwn 5\n", "x.script:1: check `cwn`: unknown variable; did you mean `cwnd`"),
            ("check state open\n", "x.script:1: check state `open`: must be listen, syn-sent"),
            ("check cwnd many\n", "x.script:1: check cwnd `many`: must be a number of bytes"),
            ("connect\nvariant sack\n", "x.script:2: options and the variant stand before the first event"),
            ("variant rak\nconnect\n", "x.script:1: "),
            ("\ntcp sak = false\nconnect\n", "x.script:2: tcp sak: "),
            ("tcp sack = maybe\nconnect\n", "x.script:1: tcp sack = maybe: "),
            ("tcp mss = 5\nconnect\n", "x.script:1: tcp mss = 5: must be"),
            ("< . 1:1(0) ack 1 without TS\n", "x.script:1: `without` is only for segments"),
            ("> . 1:1(0)\n", "x.script:1: `ack N` and the flag `.` go together"),
            ("# nothing else\n", "x.script:1: no event; each line begins with"),
            ("", "x.script:1: no event"),
        ] {
            assert!(error(text).starts_with(expected), "{text:?}: {}", error(text));
        }
    }

    #[test]
    fn no_text_can_crash_the_parser() {
        let valid = "# x\ntcp sack = true\n0ms connect\n> S 0:0(0) mss 1460\n10ms < S. 0:0(0) ack 1\ncheck cwnd 1\n";
        for cut in 0..valid.len() {
            for junk in ["", "\u{fffd}", "9", ":", "(", "+", " ", "\n<", "99999999999999999999"] {
                let _ = parse("x", &format!("{}{junk}{}", &valid[..cut], &valid[(cut + 1).min(valid.len())..]));
            }
        }
    }
}
