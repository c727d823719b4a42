//! Profiles: paths described in TOML.
//!
//! ```toml
//! description = "two links and a stage that delays some packets"
//! source = "the source of the numbers"
//!
//! [[forward]]                 # from the sender of data to its receiver, stage by stage
//! kind = "link"
//! name = "bottleneck"         # optional, for overrides: forward.bottleneck.rate
//! rate = "10 Mbit/s"
//! delay = "50 ms"
//!
//! [[reverse]]                 # and back
//! kind = "link"
//! delay = "50 ms"
//!
//! [tcp]                       # TCP options of both ends for this path
//! min_rto = "1 s"
//! ```

use std::path::Path;

use reknit_config::{InputError, KeyError, Location, switch, text};
use reknit_units::{Rate, Share};
use toml::{Table, Value};

use crate::builtin;
use crate::stages::{KINDS, Loss, Mode, Spec};

/// A direction of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the sender of data to its receiver.
    Forward,
    /// Back.
    Reverse,
}

/// One stage of a profile.
#[derive(Clone, PartialEq, Debug)]
pub struct StageEntry {
    /// The name for overrides; by default the kind.
    pub name: String,
    /// Its parameters.
    pub spec: Spec,
}

/// A path.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// The name of a built-in profile, or of the file.
    pub name: String,
    /// A description in one sentence.
    pub description: String,
    /// The source of the path's numbers.
    pub source: String,
    /// Stages from the sender of data to its receiver.
    pub forward: Vec<StageEntry>,
    /// Stages back.
    pub reverse: Vec<StageEntry>,
    /// Whether stages report the packets that they drop to receivers whose flows ask for it.
    pub drop_notices: bool,
    /// TCP options of both ends.
    pub tcp: Table,
}

const ALLOWED: [&str; 6] = ["description", "source", "forward", "reverse", "drop_notices", "tcp"];

impl Profile {
    /// The built-in profile `name`, or the profile in the file of that name (if it contains a `/` or ends in `.toml`).
    /// `overrides` are `key=value`, for example `forward.bottleneck.rate=2 Mbit/s` or `reverse.link.delay=10 ms`.
    ///
    /// # Errors
    /// If there is none, or it is not a valid path.
    pub fn load(name: &str, overrides: &[String]) -> Result<Profile, InputError> {
        Profile::from_table_with(name, Profile::table(name)?, overrides)
    }

    /// The table of the built-in profile or the file.
    ///
    /// # Errors
    /// If there is none, or it is not TOML.
    pub fn table(name: &str) -> Result<Table, InputError> {
        let refuse = |message: String| InputError::new(name, message);
        if name.is_empty() {
            return Err(InputError::of_argument(
                "path",
                "``",
                "no path has this name; `reknit paths` lists the built-in ones",
            ));
        }
        if is_file_name(name) {
            let text = reknit_config::read_file(Path::new(name), reknit_config::LARGEST_FILE).map_err(refuse)?;
            return reknit_config::parse(name, &text);
        }
        let Some(text) = builtin(name) else {
            let near = reknit_config::did_you_mean(name, builtin::NAMES.iter().copied());
            let and = if near.is_empty() { ";" } else { "" };
            return Err(refuse(format!(
                "unknown path{near}{and} `reknit paths` lists the built-in ones; a file name must end in `.toml` or contain `/`"
            )));
        };
        reknit_config::parse(name, text)
    }

    /// Parses the profile in `text`.
    ///
    /// # Errors
    /// Names the line (for invalid TOML) or the key, and what is allowed.
    pub fn parse(name: &str, text: &str) -> Result<Profile, InputError> {
        Profile::from_table_with(name, reknit_config::parse(name, text)?, &[])
    }

    /// The profile in a table that is part of another file; `name` is its name in results and errors.
    ///
    /// # Errors
    /// As [`Profile::load`].
    pub fn from_table_with(name: &str, mut table: Table, overrides: &[String]) -> Result<Profile, InputError> {
        let location = |assignment: &String| Location::Argument("set", assignment.clone());
        let given = table.clone();
        for assignment in overrides {
            set(&mut table, assignment).map_err(|error| error.at(location(assignment)))?;
        }
        Profile::from_table(name, table).map_err(|error| match culprit(name, given, overrides) {
            Some(assignment) => InputError { location: location(assignment), ..error },
            None => error,
        })
    }

    /// The profile in a table, called `name` in results and errors.
    ///
    /// # Errors
    /// Names the key, and what is allowed.
    pub fn from_table(name: &str, table: Table) -> Result<Profile, InputError> {
        Profile::read(name, table).map_err(|error| error.at(name))
    }

    fn read(name: &str, mut table: Table) -> Result<Profile, KeyError> {
        let profile = Profile {
            name: name.to_owned(),
            description: text(&mut table, "description")?.unwrap_or_default(),
            source: text(&mut table, "source")?.unwrap_or_default(),
            forward: stages(&mut table, "forward")?,
            reverse: stages(&mut table, "reverse")?,
            drop_notices: switch(&mut table, "drop_notices")?.unwrap_or(false),
            tcp: match table.remove("tcp") {
                None => Table::new(),
                Some(Value::Table(tcp)) => tcp,
                Some(other) => {
                    return Err(KeyError::new("tcp", format!("must be a table, not {}", reknit_config::shown(&other))));
                }
            },
        };
        match table.keys().next() {
            Some(key) => Err(KeyError::new(key.as_str(), reknit_config::unknown("unknown key", key, &ALLOWED))),
            None => Ok(profile),
        }
    }

    /// The stages of one direction.
    pub fn stages(&self, direction: Direction) -> &[StageEntry] {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Reverse => &self.reverse,
        }
    }

    /// The rate of the slowest stage of one direction, if any has one.
    pub fn bottleneck(&self, direction: Direction) -> Option<Rate> {
        self.stages(direction).iter().filter_map(|named| named.spec.rate()).min()
    }

    /// The same path without reordering, as a reference for goodput.
    #[must_use]
    pub fn in_order(&self) -> Profile {
        let keep = |stages: &[StageEntry]| {
            let kept = stages
                .iter()
                .filter_map(|named| Some(StageEntry { name: named.name.clone(), spec: named.spec.in_order()? }));
            kept.collect()
        };
        Profile { forward: keep(&self.forward), reverse: keep(&self.reverse), ..self.clone() }
    }

    /// True if a stage loses packets on purpose: at random, in bursts, in outages, or by corruption. Queues may
    /// overflow on any path.
    pub fn loses_packets(&self) -> bool {
        let loses = |named: &StageEntry| {
            matches!(named.spec, Spec::Loss(_) | Spec::Gilbert(_) | Spec::Outage(_) | Spec::Corruption(_))
        };
        self.forward.iter().chain(&self.reverse).any(loses)
    }

    /// Loses each data packet with this probability, in addition to the path's other losses. Sets the first loss stage
    /// of the forward direction, or adds one at its end.
    pub fn set_loss(&mut self, probability: Share) {
        for named in &mut self.forward {
            if let Spec::Loss(loss) = &mut named.spec {
                loss.probability = probability;
                return;
            }
        }
        let spec = Spec::Loss(Loss { probability, packets: Vec::new() });
        self.forward.push(StageEntry { name: "loss".to_owned(), spec });
    }
}

/// The override that makes the path in `table` wrong. Those that append a stage are left out: other options are written as these.
fn culprit<'a>(name: &str, mut table: Table, overrides: &'a [String]) -> Option<&'a String> {
    let is_right = |table: &Table| Profile::from_table(name, table.clone()).is_ok();
    let mut was_right = is_right(&table);
    let mut found = None;
    for assignment in overrides {
        set(&mut table, assignment).ok()?;
        let right = is_right(&table);
        if was_right && !right {
            found = Some(assignment);
        }
        was_right = right;
    }
    found.filter(|assignment| !assignment.split('=').next().unwrap_or_default().trim().ends_with('+'))
}

/// True if this name refers to a file.
pub fn is_file_name(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"))
}

fn stages(table: &mut Table, direction: &str) -> Result<Vec<StageEntry>, KeyError> {
    let stages = match table.remove(direction) {
        None => Vec::new(),
        Some(Value::Array(stages)) => stages,
        Some(_) => {
            return Err(KeyError::new(
                direction,
                format!("must be a list of stages (in TOML: [[{direction}]] tables)"),
            ));
        }
    };
    let read_one = |(i, value)| match value {
        Value::Table(table) => stage(table).map_err(|error| error.inside(&format!("{direction}[{i}]"))),
        _ => Err(KeyError::new(format!("{direction}[{i}]"), "a stage is a table with a `kind`")),
    };
    let stages: Vec<StageEntry> = stages.into_iter().enumerate().map(read_one).collect::<Result<_, _>>()?;
    let mut has_branches = false;
    for (i, entry) in stages.iter().enumerate() {
        if matches!(&entry.spec, Spec::Shield(shield) if shield.mode == Mode::Equalise) && !has_branches {
            return Err(KeyError::new(
                format!("{direction}[{i}].mode"),
                "equalise needs branches whose delays differ, but no stage before this one has any; those of the kinds \
                 multipath and stripe do, with at least two paths or links (shield stage)",
            ));
        }
        has_branches |= entry.spec.branches() > 1;
    }
    Ok(stages)
}

fn stage(mut table: Table) -> Result<StageEntry, KeyError> {
    let kind = text(&mut table, "kind")?.unwrap_or_default();
    let name = text(&mut table, "name")?.unwrap_or_default();
    let Some((_, read)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let known: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        let what = if kind.is_empty() { "missing".to_owned() } else { format!("unknown kind of stage `{kind}`") };
        return Err(KeyError::new("kind", reknit_config::unknown(&what, &kind, &known)));
    };
    let spec = read(table).map_err(|error| error.map_message(|message| format!("{message} ({kind} stage)")))?;
    Ok(StageEntry { name: if name.is_empty() { kind } else { name }, spec })
}

/// Applies `key=value` to the table of a path. The key is any key of a path file, with dots. A list entry is selected
/// by its name, its kind or its position from 0: `forward.links.paths.1.delay`. `+` appends an entry:
/// `forward.+={ kind = "link", delay = "20 ms" }`.
///
/// # Errors
/// Names the key, and what is allowed.
pub fn set(table: &mut Table, assignment: &str) -> Result<(), KeyError> {
    const EXPECTED: &str = "expected tcp.KEY=VALUE, forward.STAGE.KEY=VALUE, reverse.STAGE.KEY=VALUE or drop_notices=VALUE; KEY \
                            may reach into lists and tables, as in forward.links.paths.1.delay";
    let Some((path, value)) = assignment.split_once('=') else { return Err(KeyError::new("", EXPECTED)) };
    let keys: Vec<&str> = path.trim().split('.').collect();
    match keys[..] {
        ["drop_notices" | "description" | "source"] | ["tcp" | "forward" | "reverse", _, ..] => {
            insert(table, &keys, literal(value))
        }
        _ => Err(KeyError::new("", EXPECTED)),
    }
}

/// Sets `keys` in `table` to `value`, and creates missing tables.
fn insert(table: &mut Table, keys: &[&str], value: Value) -> Result<(), KeyError> {
    let Some((first, rest)) = keys.split_first() else { return Ok(()) };
    if rest.is_empty() {
        table.insert((*first).to_owned(), value);
        return Ok(());
    }
    let missing =
        || if ["forward", "reverse"].contains(first) { Value::Array(Vec::new()) } else { Table::new().into() };
    let next = table.entry(*first).or_insert_with(missing);
    let nouns = if ["forward", "reverse"].contains(first) { ["stage", "stages"] } else { ["entry", "entries"] };
    insert_into(next, rest, value, nouns).map_err(|error| error.inside(first))
}

/// `nouns`: what a list contains, one and several, for errors.
fn insert_into(at: &mut Value, keys: &[&str], value: Value, nouns: [&str; 2]) -> Result<(), KeyError> {
    match (at, keys) {
        (Value::Table(table), keys) => insert(table, keys, value),
        (Value::Array(list), ["+"]) => {
            list.push(value);
            Ok(())
        }
        (Value::Array(list), [wanted, rest @ ..]) => {
            let entry = entry(list, wanted, nouns)?;
            if rest.is_empty() {
                *entry = value;
                return Ok(());
            }
            insert_into(entry, rest, value, ["entry", "entries"]).map_err(|error| error.inside(wanted))
        }
        (other, keys) => {
            let message = format!("`{other}` has no keys");
            Err(KeyError::new(keys.join("."), message))
        }
    }
}

/// The entry of a list with this name, kind or position.
fn entry<'a>(list: &'a mut [Value], wanted: &str, [one, several]: [&str; 2]) -> Result<&'a mut Value, KeyError> {
    let label = |(i, entry): (usize, &Value)| {
        let get = |key| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        get("name").or(get("kind")).unwrap_or_else(|| i.to_string())
    };
    let labels: Vec<String> = list.iter().enumerate().map(label).collect();
    let position = wanted.parse().ok().or_else(|| labels.iter().position(|label| label == wanted));
    let entry = position.and_then(|i: usize| list.get_mut(i));
    entry.ok_or_else(|| {
        let near = reknit_config::did_you_mean(wanted, labels.iter().map(String::as_str));
        let the = if near.is_empty() { "; the" } else { " The" };
        KeyError::new(
            wanted,
            match &labels[..] {
                [] => format!("no such {one}; there are no {several}"),
                [only] => format!("no such {one}{near}{the} only {one} is {only}"),
                labels => format!("no such {one}{near}{the} {several} are {}", labels.join(", ")),
            },
        )
    })
}

/// Parses a TOML literal; anything else is a string, so `50 ms` needs no quotes.
pub fn literal(value: &str) -> Value {
    let value = value.trim();
    format!("v = {value}")
        .parse::<Table>()
        .ok()
        .and_then(|mut table| table.remove("v"))
        .unwrap_or_else(|| Value::String(value.to_owned()))
}

#[cfg(test)]
mod tests {
    use reknit_units::{Duration, Rate};

    use super::*;
    use crate::stages::Link;

    const GOOD: &str = "description = \"a link\"\n\
                        [[forward]]\nkind = \"link\"\nname = \"bottleneck\"\nrate = \"10 Mbit/s\"\n\
                        [[forward]]\nkind = \"loss\"\nprobability = 0.01\n";

    fn error(text: &str) -> String {
        let error = Profile::parse("bad.toml", text).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error:?}");
        error
    }

    #[test]
    fn a_profile_can_be_read() {
        let profile = Profile::parse("good", GOOD).unwrap();
        assert_eq!(profile.forward[0].name, "bottleneck");
        let rate = Some(Rate::from_bits_per_second(10_000_000));
        assert_eq!(profile.forward[0].spec, Spec::Link(Link { rate, ..Link::default() }));
        assert!(profile.reverse.is_empty());
    }

    #[test]
    fn errors_name_the_place_and_what_is_allowed() {
        assert_eq!(
            error(&GOOD.replace("rate", "rait")),
            "bad.toml: forward[0].rait: unknown key; did you mean `rate`? Allowed are rate, delay, queue, red, codel, fq_codel, pie (link stage)"
        );
        assert_eq!(
            error(&GOOD.replace("10 Mbit/s", "10 Mb")),
            "bad.toml: forward[0].rate: `10 Mb` is not a rate; write a number and a unit (bit/s, kbit/s, Mbit/s, \
             Gbit/s), for example `10 Mbit/s` (link stage)"
        );
        let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            error(&GOOD.replace("\"loss\"", "\"losss\"")),
            format!(
                "bad.toml: forward[1].kind: unknown kind of stage `losss`; did you mean `loss`? Allowed are {}",
                kinds.join(", ")
            )
        );
        assert!(error(&GOOD.replace("0.01", "1.5")).contains("forward[1].probability: `1.5` is not a probability"));
        assert!(
            error(&GOOD.replace("kind = \"loss\"\n", ""))
                .starts_with("bad.toml: forward[1].kind: missing; allowed are link, ")
        );
        assert_eq!(
            error(&GOOD.replace("10 Mbit/s", "0 bit/s")),
            "bad.toml: forward[0].rate: must be more than 0 (link stage)"
        );
        assert!(error(&format!("colour = 1\n{GOOD}")).starts_with("bad.toml: colour: unknown key; allowed are desc"));
        assert!(error(&format!("{GOOD}rate = = 3")).starts_with("bad.toml:9: "));
        assert!(error("forward = 3").contains("forward: must be a list of stages (in TOML: [[forward]] tables)"));
    }

    #[test]
    fn overrides_address_stages_by_name_kind_or_position() {
        let with = |set: &str| {
            Profile::from_table_with("good", reknit_config::parse("good", GOOD).unwrap(), &[set.to_owned()])
        };
        let delay = |profile: &Profile| match &profile.forward[0].spec {
            Spec::Link(link) => link.delay,
            other => panic!("{other:?}"),
        };
        for set in ["forward.bottleneck.delay=5 ms", "forward.0.delay=\"5 ms\""] {
            assert_eq!(delay(&with(set).unwrap()), Duration::from_millis(5), "{set}");
        }
        assert!(with("forward.loss.probability=0.5").is_ok());
        assert!(with("drop_notices=true").unwrap().drop_notices && !with("tcp.mss=500").unwrap().drop_notices);
        assert_eq!(
            with("drop_notices=3").unwrap_err().to_string(),
            "set = drop_notices=3: drop_notices: must be true or false, not 3"
        );
        assert_eq!(with("tcp.mss=500").unwrap().tcp["mss"], Value::Integer(500));
        assert_eq!(
            with("forward.exit.rate=1").unwrap_err().to_string(),
            "set = forward.exit.rate=1: forward.exit: no such stage; the stages are bottleneck, loss"
        );
        assert!(with("speed=3").unwrap_err().to_string().contains("expected tcp.KEY=VALUE"));
        assert!(with("nonsense").is_err());
    }

    #[test]
    fn loss_is_set_or_added() {
        let mut profile = Profile::parse("good", GOOD).unwrap();
        profile.set_loss(Share::ONE);
        assert_eq!(profile.forward.len(), 2);
        profile.forward.pop();
        profile.set_loss(Share::ONE);
        assert!(matches!(&profile.forward[1].spec, Spec::Loss(loss) if loss.probability == Share::ONE));
    }

    #[test]
    fn changes_of_a_path_take_time() {
        for (stage, key) in [
            ("kind = \"flutter\"\ninterval = \"exponential(0 s)\"\ndelay = \"constant(1 ms)\"\n", "interval"),
            ("kind = \"lull\"\ninterval = \"constant(1 ns)\"\npause = \"constant(0 s)\"\n", "interval"),
            ("kind = \"outage\"\nup = \"exponential(0 s)\"\ndown = \"constant(0 s)\"\n", "up"),
            (
                "kind = \"manet\"\nhop = \"constant(1 ms)\"\nlife = \"constant(1 ns)\"\noutage = \"constant(0 s)\"\n",
                "life",
            ),
        ] {
            let error = Profile::parse("hasty", &format!("[[forward]]\n{stage}")).unwrap_err().to_string();
            let says = format!("hasty: forward[0].{key}: must be at least 10 us on average");
            assert!(error.starts_with(&says), "{error}");
        }
    }

    #[test]
    fn in_order_is_no_faster_than_the_path() {
        let in_order = |stage: &str| {
            let profile = Profile::parse("slow", &format!("[[forward]]\n{stage}")).unwrap();
            profile.in_order().bottleneck(Direction::Forward).map(Rate::bits_per_second)
        };
        assert_eq!(in_order("kind = \"stripe\"\nlinks = 10\nrate = \"100 Mbit/s\"\nload = 0.5\n"), Some(500_000_000));
        // 12,000 bits in 2 ms and 15.5 slots of 20 us.
        assert_eq!(in_order("kind = \"wlan\"\n"), Some(5_194_805));
    }

    #[test]
    fn in_order_keeps_rate_and_loss() {
        let text = format!("{GOOD}[[forward]]\nkind = \"delay\"\nextra = \"constant(1 ms)\"\n");
        let profile = Profile::parse("good", &text).unwrap();
        assert_eq!(profile.in_order().forward, profile.forward[..2]);
    }
}
