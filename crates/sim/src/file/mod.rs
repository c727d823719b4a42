//! Scenario files: plans in TOML, described in `docs/reference/scenarios.md`.

mod workloads;

use std::collections::BTreeMap;
use std::path::Path;

use reknit_config::{InputError, KeyError, read};
use reknit_path::{Phases, Variate};
use reknit_units::{Duration, Share};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use toml::{Table, Value};

pub(crate) use self::workloads::{EmptyTable, Files, Requests, Transfer};
use self::workloads::{KINDS, no_time, workload, workload_share};
use crate::liar::Misbehavior;
use crate::plan::{Group, PathSource, Plan, WorkloadShare};

/// The most flows of a group.
pub const MAX_FLOWS: u32 = 100_000;
/// The most runs of a variant.
pub const MAX_SEEDS: u32 = 10_000;

impl Plan {
    /// Reads the plan in a file.
    ///
    /// # Errors
    /// Names the file, the line (for invalid TOML) or the key, what is wrong, and what is allowed.
    pub fn load(path: &Path) -> Result<Plan, InputError> {
        let location = path.display().to_string();
        let text = reknit_config::read_file(path, reknit_config::LARGEST_FILE)
            .map_err(|error| InputError::new(&location, error))?;
        Plan::parse(&location, &text)
    }

    /// Parses the plan in `text`; `location` is its name for errors.
    ///
    /// # Errors
    /// As [`Plan::load`].
    pub fn parse(location: &str, text: &str) -> Result<Plan, InputError> {
        Plan::from_table(location, reknit_config::parse(location, text)?)
    }

    /// Reads the plan in `table`; `location` is its name for errors.
    ///
    /// # Errors
    /// As [`Plan::load`].
    pub fn from_table(location: &str, table: Table) -> Result<Plan, InputError> {
        plan(location, table).map_err(|error| error.at(location))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenarioTable {
    /// A description in one sentence.
    #[serde(default)]
    description: String,
    /// A built-in path, a path file, or a table with the keys of a path file.
    #[schemars(with = "Option<serde_json::Value>")]
    path: Option<Value>,
    /// Values of the path to change, such as `"forward.bottleneck.rate" = "2 Mbit/s"`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    set: Table,
    /// Each data packet is lost with this probability.
    loss: Option<Share>,
    /// Removes all reordering from the path.
    #[serde(default)]
    in_order: bool,
    /// Length of each run.
    duration: Option<Duration>,
    /// Time at the beginning of each run that is left out of the results.
    #[serde(default)]
    warm_up: Duration,
    /// Runs of each variant, with the seeds from 1 to this number.
    seeds: Option<u32>,
    /// `drawn`: each seed draws the starting points of everything periodic; `fixed`: they are the same for every seed.
    #[serde(default)]
    phases: Phases,
    /// Variants to compare: names, or tables with the keys of a variant file.
    #[serde(default)]
    variants: Vec<String>,
    /// A number of bulk flows, or a table for each set of flows.
    #[schemars(with = "Option<serde_json::Value>")]
    flows: Option<Value>,
}

fn plan(location: &str, mut table: Table) -> Result<Plan, KeyError> {
    if table.contains_key("axes") {
        return Err(KeyError::new("axes", "only `reknit sweep` runs a scenario with [axes]"));
    }
    let own_variants = own_variants(location, &mut table);
    let top: ScenarioTable = read(table)?;
    if top.duration.is_some_and(Duration::is_zero) {
        return Err(KeyError::new("duration", "must be more than 0"));
    }
    if top.seeds.is_some_and(|seeds| !(1..=MAX_SEEDS).contains(&seeds)) {
        return Err(KeyError::new("seeds", format!("must be from 1 to {MAX_SEEDS}")));
    }
    let path = match top.path {
        None => None,
        Some(Value::String(name)) => Some(PathSource::Named(name)),
        Some(Value::Table(table)) => Some(PathSource::Inline(table)),
        Some(other) => {
            let message =
                format!("must be the name of a path or file, or a table, not {}", reknit_config::shown(&other));
            return Err(KeyError::new("path", message));
        }
    };
    Ok(Plan {
        set: top.set.into_iter().map(|(key, value)| format!("{key}={}", unquoted(value))).collect(),
        set_by_argument: Vec::new(),
        loss: top.loss,
        in_order: top.in_order,
        location: location.to_owned(),
        description: top.description.split_whitespace().collect::<Vec<_>>().join(" "),
        path,
        duration: top.duration,
        warm_up: top.warm_up,
        seeds: top.seeds,
        phases: top.phases,
        variants: top.variants,
        own_variants,
        groups: groups(top.flows)?,
    })
}

/// Removes the variants that are given as tables, and leaves their names.
fn own_variants(location: &str, table: &mut Table) -> Vec<(String, Table)> {
    let mut found = Vec::new();
    let mut take = |key: String, value: &mut Value| {
        if let Value::Table(own) = value {
            let own = std::mem::take(own);
            // A variant without a name is refused later.
            *value = own.get("name").cloned().unwrap_or_else(|| Value::String(String::new()));
            found.push((format!("{location}: {key}"), own));
        }
    };
    for (i, value) in table.get_mut("variants").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
        take(format!("variants[{i}]"), value);
    }
    for (i, flows) in table.get_mut("flows").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
        if let Some(value) = flows.get_mut("variant") {
            take(format!("flows[{i}].variant"), value);
        }
    }
    found
}

fn unquoted(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// A number of bulk flows, or a table for each set; by default one bulk flow.
fn groups(flows: Option<Value>) -> Result<Vec<Group>, KeyError> {
    let group = |(i, value): (usize, Value)| {
        let read = value.try_into().map_err(|_| KeyError::new("", "write it as a [[flows]] table"));
        read.and_then(|table| group(i, table)).map_err(|error| error.inside(&format!("flows[{i}]")))
    };
    match flows {
        None => Ok(vec![Group::bulk(1)]),
        Some(Value::Integer(count)) => {
            let count = u32::try_from(count).ok().filter(|count| (1..=MAX_FLOWS).contains(count));
            let wrong = || KeyError::new("flows", format!("must be from 1 to {MAX_FLOWS}"));
            Ok(vec![Group::bulk(count.ok_or_else(wrong)?)])
        }
        Some(Value::Array(tables)) if !tables.is_empty() => tables.into_iter().enumerate().map(group).collect(),
        Some(_) => Err(KeyError::new("flows", "write a number of bulk flows, or at least one [[flows]] table")),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flows {
    /// The name of the set in the results.
    name: Option<String>,
    /// The variant at both ends; by default the one that is compared.
    variant: Option<String>,
    /// The number of flows.
    #[serde(default = "one")]
    count: u32,
    /// When the first one opens: a time, or a distribution from which each flow draws its own.
    #[serde(default)]
    #[schemars(with = "Variate")]
    start: Start,
    /// Time between the opening of one flow and the next.
    #[serde(default)]
    interval: Duration,
    /// TCP options of both ends, in addition to those of the path.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    tcp: Table,
    /// What the receivers lie about, to get more than their share (docs/design/security.md); by default nothing.
    lie: Option<Misbehavior>,
    /// What each flow transfers.
    #[schemars(with = "Option<serde_json::Value>")]
    workload: Option<Value>,
    /// Several workloads, each with its share of the flows.
    #[schemars(with = "Option<Vec<serde_json::Value>>")]
    mix: Option<Vec<Table>>,
}

fn one() -> u32 {
    1
}

fn group(i: usize, table: Table) -> Result<Group, KeyError> {
    let flows: Flows = read(table)?;
    if !(1..=MAX_FLOWS).contains(&flows.count) {
        return Err(KeyError::new("count", format!("must be from 1 to {MAX_FLOWS}")));
    }
    let name = flows.name.unwrap_or_else(|| format!("flows[{i}]"));
    let workloads = match (flows.workload, flows.mix) {
        (Some(value), None) => {
            let workload = workload(value).map_err(|error| error.inside("workload"))?;
            vec![WorkloadShare { name, share: Share::ONE, workload }]
        }
        (None, Some(mix)) if !mix.is_empty() => {
            let share =
                |(j, table)| workload_share(&name, j, table).map_err(|error| error.inside(&format!("mix[{j}]")));
            mix.into_iter().enumerate().map(share).collect::<Result<_, _>>()?
        }
        (Some(_), Some(_)) => return Err(KeyError::new("mix", "give either `workload` or `mix`, not both")),
        (None, _) => {
            return Err(KeyError::new(
                "workload",
                format!("missing; give one of {}, or several as `mix`", KINDS.join(", ")),
            ));
        }
    };
    let Start(start) = flows.start;
    let (variant, count, interval, tcp, lie) = (flows.variant, flows.count, flows.interval, flows.tcp, flows.lie);
    Ok(Group { variant, count, start, interval, tcp, lie, workloads })
}

/// A time, or a distribution of times.
struct Start(Variate);

impl Default for Start {
    fn default() -> Start {
        Start(no_time())
    }
}

impl<'de> Deserialize<'de> for Start {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Start, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse::<Duration>() {
            Ok(time) => Ok(Start(Variate::Constant(time))),
            Err(_) => text.parse().map(Start).map_err(|error| D::Error::custom(format!("{error}, or a time: `1 s`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use reknit_units::Bytes;

    use super::*;

    const GOOD: &str = "path = \"clean\"\nduration = \"10 s\"\nseeds = 2\nvariants = [\"sack\"]\n\
                        [[flows]]\nname = \"web\"\ncount = 4\nstart = \"uniform(0 ms, 200 ms)\"\n\
                        workload = { kind = \"requests\", request = \"300 B\", response = \"5 kB\" }\n\
                        [[flows]]\nvariant = \"newreno\"\nworkload = \"bulk\"\n";

    fn error(text: &str) -> String {
        let error = Plan::parse("s.toml", text).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error:?}");
        error
    }

    #[test]
    fn a_plan_reads() {
        let plan = Plan::parse("s.toml", GOOD).unwrap();
        assert_eq!(plan.path, Some(PathSource::Named("clean".to_owned())));
        assert_eq!((plan.seeds, plan.groups.len()), (Some(2), 2));
        assert_eq!(plan.groups[0].workloads[0].name, "web");
        let transactions = plan.groups[0].workloads[0].workload.transactions().unwrap();
        assert_eq!((transactions.request, transactions.per_connection), (Bytes(300), Some(NonZeroU32::MIN)));
        assert_eq!(plan.groups[1].variant.as_deref(), Some("newreno"));
    }

    #[test]
    fn errors_name_the_file_the_key_and_what_is_allowed() {
        for (from, to, says) in [
            ("path", "paths", "s.toml: paths: unknown key; did you mean `path`? Allowed are description, path, set"),
            ("seeds", "axes", "s.toml: axes: only `reknit sweep` runs a scenario with [axes]"),
            ("= 2", "= 0", "s.toml: seeds: must be from 1 to 10000"),
            ("\"10 s\"", "\"10\"", "s.toml: duration: `10` is not a duration; write a number and a unit"),
            ("\"10 s\"", "\"0 s\"", "s.toml: duration: must be more than 0"),
            ("= 2", "= = 2", "s.toml:3: "),
            ("count = 4", "count = 0", "s.toml: flows[0].count: must be from 1 to 100000"),
            ("uniform", "gauss", "s.toml: flows[0].start: `gauss(0 ms, 200 ms)` is not a distribution"),
            (
                "\"bulk\"",
                "\"bulky\"",
                "flows[1].workload.kind: unknown workload `bulky`; did you mean `bulk`? Allowed are bulk, transfer, files, r",
            ),
            ("workload = \"bulk\"", "", "flows[1].workload: missing; give one of bulk, "),
            ("response", "size", "flows[0].workload.size: unknown key; allowed are request, response, think"),
            (
                "\"bulk\"",
                "{ kind = \"bulk\", size = 3 }",
                "flows[1].workload.size: unknown key; no other key is allowed here (bulk)",
            ),
            ("\"5 kB\"", "\"0 B\"", "flows[0].workload.response: must be at least 1 B"),
            ("\"300 B\"", "\"0 B\"", "flows[0].workload.request: must be at least 1 B"),
            ("\"5 kB\"", "\"5 kB\", per_connection = 0", "flows[0].workload.per_connection: must be at least 1, or"),
            ("\"5 kB\"", "\"5 kB\", think = \"soon\"", "flows[0].workload.think: `soon` is not a distribution"),
            ("\"bulk\"", "\"bulk\"\nmix = []", "flows[1].mix: give either `workload` or `mix`, not both"),
        ] {
            let error = error(&GOOD.replacen(from, to, 1));
            assert!(error.contains(says), "{error:?} does not contain {says:?}");
        }
        let says = "s.toml: flows: write a number of bulk flows, or at least one [[flows]] table";
        assert_eq!(error("flows = []\n"), says);
        assert_eq!(error("flows = 0\n"), "s.toml: flows: must be from 1 to 100000");
        let mix = "[[flows]]\nmix = [{ share = 0, kind = \"bulk\" }]\n";
        assert_eq!(error(mix), "s.toml: flows[0].mix[0].share: must be more than 0");
    }

    #[test]
    fn a_plan_may_contain_variants() {
        let text = GOOD.replace("[\"sack\"]", "[\"sack\", { name = \"mine\", base = \"rack\" }]");
        let plan = Plan::parse("s.toml", &text.replace("\"newreno\"", "{ name = \"other\" }")).unwrap();
        assert_eq!(plan.variants, ["sack", "mine"]);
        assert_eq!(plan.groups[1].variant.as_deref(), Some("other"));
        let locations: Vec<&str> = plan.own_variants.iter().map(|(location, _)| location.as_str()).collect();
        assert_eq!(locations, ["s.toml: variants[1]", "s.toml: flows[1].variant"]);
    }

    #[test]
    fn flows_may_be_a_number_or_missing() {
        let count = |text| Plan::parse("s.toml", text).unwrap().groups[0].count;
        assert_eq!((count("path = \"clean\"\n"), count("flows = 3\n")), (1, 3));
    }

    #[test]
    fn the_path_may_be_changed() {
        let text = "path = \"rr-tcp\"\nloss = \"1 %\"\nset = { \"forward.bottleneck.rate\" = \"2 Mbit/s\" }\n";
        let changed = Plan::parse("s.toml", text).unwrap().profile().unwrap();
        assert_eq!(changed.bottleneck(reknit_path::Direction::Forward).unwrap().bits_per_second(), 2_000_000);
        let wrong = Plan::parse("s.toml", &text.replace("bottleneck", "neck")).unwrap().profile().unwrap_err();
        let says = "s.toml: set.\"forward.neck.rate\": forward.neck: no such stage; ";
        assert!(wrong.to_string().starts_with(says), "{wrong}");
    }

    #[test]
    fn a_mix_has_named_workloads() {
        let mix = "[[flows]]\nname = \"web\"\nmix = [{ share = \"25 %\", name = \"small\", kind = \"files\", \
                   size = \"5 kB\" }, { share = 0.75, kind = \"bulk\" }]\n";
        let plan = Plan::parse("s.toml", mix).unwrap();
        let names: Vec<&str> = plan.workloads().map(|(_, share)| share.name.as_str()).collect();
        assert_eq!(names, ["web/small", "web/1"]);
    }
}
