//! Converts Python's arguments to options. Values that the command refuses are refused here too, with the name of the
//! argument.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use pyo3::types::PyDict;
use pyo3::{Bound, FromPyObject, PyAny};
use reknit_compare::{
    Axis, CompareOptions, Error, GridFile, InputError, KeyError, Location, ScenarioOptions, SimulateOptions, names,
};
use reknit_path::{Phases, Profile};
use reknit_sim::{Group, MAX_FLOWS, MAX_SEEDS, PathSource, Plan, Transports};
use reknit_trace::CapturePoint;
use reknit_units::{Duration, Share};
use toml::{Table, Value};

/// The name of a scenario without a file, for errors.
const SCENARIO: &str = "scenario";
/// The name of a path without a file, for errors.
const PATH: &str = "path";

/// The path and the scenario, as a dictionary. Without a scenario there is one bulk flow.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct SetupArgs<'py> {
    path: Option<NameOrTable<'py>>,
    scenario: Option<FileOrTable<'py>>,
    set: Vec<String>,
    loss: Option<String>,
    in_order: Option<bool>,
    phases: Option<String>,
    flows: Option<i64>,
}

/// A scenario: the name of a file, or a mapping with its keys.
#[derive(FromPyObject, Debug)]
pub(crate) enum FileOrTable<'py> {
    File(PathBuf),
    Table(Bound<'py, PyDict>),
}

/// A path or a variant: its name, or a mapping with the keys of a file.
#[derive(FromPyObject, Debug)]
pub(crate) enum NameOrTable<'py> {
    Name(String),
    Table(Bound<'py, PyDict>),
}

/// The variants and the duration, as a dictionary.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct RunArgs<'py> {
    variants: Vec<NameOrTable<'py>>,
    variant_files: Vec<PathBuf>,
    duration: Option<String>,
}

impl RunArgs<'_> {
    pub(crate) fn compare_options(
        self,
        setup: SetupArgs<'_>,
        paths: &[PathSource],
        seeds: Option<i64>,
        oracle: bool,
    ) -> Result<CompareOptions, Error> {
        let seeds = seeds.map(|seeds| within(seeds, MAX_SEEDS, "seeds")).transpose()?;
        let (scenario, variants) = self.scenario_options(setup)?;
        has_path(&scenario, paths)?;
        Ok(CompareOptions { scenario, variants, seeds, oracle })
    }

    /// Options for the first variant, or else for the only variant of the scenario.
    pub(crate) fn simulate_options(
        self,
        setup: SetupArgs<'_>,
        seed: u64,
        sample_every: Option<&str>,
    ) -> Result<SimulateOptions, Error> {
        let sample_every = sample_every.map(|text| read(text, "sample_every")).transpose()?;
        let (scenario, variants) = self.scenario_options(setup)?;
        has_path(&scenario, &[])?;
        let variant = match (&variants[..], &scenario.plan.variants[..]) {
            ([variant, ..], _) | ([], [variant]) => variant.clone(),
            _ => {
                let message = "missing; name one, or give a scenario with a single variant";
                return Err(InputError::new(Location::argument("variant"), message).into());
            }
        };
        Ok(SimulateOptions { scenario, variant, seed, sample_every })
    }

    /// The scenario, and the names of the variants.
    fn scenario_options(self, setup: SetupArgs<'_>) -> Result<(ScenarioOptions, Vec<String>), Error> {
        let mut plan = setup.scenario.map_or_else(|| Ok(Plan::bulk(1)), plan)?;
        if let Some(flows) = setup.flows {
            plan.groups = vec![Group::bulk(within(flows, MAX_FLOWS, "flows")?)];
        }
        let (variants, variant_tables) = variants(self.variants)?;
        let scenario = ScenarioOptions {
            plan,
            path: setup.path.map(path).transpose()?,
            set: setup.set,
            loss: setup.loss.map(|text| read::<Share>(&text, "loss")).transpose()?,
            in_order: setup.in_order,
            phases: setup.phases.map(|text| read::<Phases>(&text, "phases")).transpose()?,
            duration: self.duration.as_deref().map(duration).transpose()?,
            variant_files: self.variant_files,
            variant_tables,
            transports: Transports::default(),
        };
        Ok((scenario, variants))
    }
}

/// Without a scenario, a path is needed.
fn has_path(scenario: &ScenarioOptions, paths: &[PathSource]) -> Result<(), Error> {
    if scenario.plan.location.is_empty() && scenario.path.is_none() && paths.is_empty() {
        return Err(InputError::new(Location::argument("path"), "missing; name one, or give a scenario").into());
    }
    Ok(())
}

/// A key, the names of its values in results, and the values.
pub(crate) type AxisArg<'py> = (String, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// A scenario with axes.
pub(crate) fn grid_file(scenario: FileOrTable<'_>, axes: Vec<AxisArg<'_>>) -> Result<GridFile, Error> {
    let mut grid_file = match scenario {
        FileOrTable::File(file) => GridFile::load(&file)?,
        FileOrTable::Table(mapping) => {
            let table = table(SCENARIO, &mapping)?;
            GridFile {
                location: SCENARIO.to_owned(),
                table,
                axes: Vec::new(),
                set_by_argument: Vec::new(),
                transports: Transports::default(),
            }
        }
    };
    for (key, labels, values) in axes {
        let read = |list: &Bound<'_, PyAny>| {
            pythonize::depythonize::<Vec<Value>>(list)
                .map_err(|error| KeyError::new(&key, error.to_string()).inside("axes").at(""))
        };
        let varied = Axis::labelled(&key, read(&labels)?.into_iter().zip(read(&values)?).collect());
        let varied = varied.map_err(|error| error.at(""))?;
        grid_file.axes.retain(|other| other.key != key);
        grid_file.axes.push(varied);
    }
    Ok(grid_file)
}

/// The seeds from 1 to a number, or a list of seeds.
#[derive(FromPyObject, Debug)]
pub(crate) enum Seeds {
    UpTo(i64),
    These(Vec<u64>),
}

impl Seeds {
    pub(crate) fn list(self) -> Result<Vec<u64>, Error> {
        match self {
            Seeds::UpTo(n) => Ok((1..=u64::from(within(n, MAX_SEEDS, "seeds")?)).collect()),
            Seeds::These(seeds) => Ok(seeds),
        }
    }
}

fn plan(scenario: FileOrTable<'_>) -> Result<Plan, Error> {
    match scenario {
        FileOrTable::File(file) => Ok(Plan::load(&file)?),
        FileOrTable::Table(mapping) => Ok(Plan::from_table(SCENARIO, table(SCENARIO, &mapping)?)?),
    }
}

pub(crate) fn path(path: NameOrTable<'_>) -> Result<PathSource, Error> {
    match path {
        NameOrTable::Name(name) => Ok(PathSource::Given(name)),
        NameOrTable::Table(mapping) => Ok(PathSource::GivenInline(table(PATH, &mapping)?)),
    }
}

/// A path with these changes.
pub(crate) fn profile(path: NameOrTable<'_>, set: &[String]) -> Result<Profile, Error> {
    match path {
        NameOrTable::Name(name) => names::load_path(&name, set),
        NameOrTable::Table(mapping) => Ok(Profile::from_table_with(PATH, table(PATH, &mapping)?, set)?),
    }
}

type Own = (String, Table);

/// The names of the variants, and those that are given as tables.
fn variants(given: Vec<NameOrTable<'_>>) -> Result<(Vec<String>, Vec<Own>), Error> {
    let (mut names, mut own) = (Vec::new(), Vec::new());
    for (i, variant) in given.into_iter().enumerate() {
        match variant {
            NameOrTable::Name(name) => names.push(name),
            NameOrTable::Table(mapping) => {
                let location = format!("variants[{i}]");
                let table = table(&location, &mapping)?;
                // A variant without a name is refused later.
                names.push(table.get("name").and_then(Value::as_str).unwrap_or_default().to_owned());
                own.push((location, table));
            }
        }
    }
    Ok((names, own))
}

/// A mapping as a TOML table; `location` is its name for errors.
fn table(location: &str, mapping: &Bound<'_, PyDict>) -> Result<Table, Error> {
    Ok(pythonize::depythonize(mapping).map_err(|error| InputError::new(location, error.to_string()))?)
}

/// Where a capture was made.
pub(crate) fn place(text: &str) -> Result<CapturePoint, String> {
    match text {
        "sender" => Ok(CapturePoint::Sender),
        "middle" => Ok(CapturePoint::Middle),
        "receiver" => Ok(CapturePoint::Receiver),
        _ => Err(format!("at = {text}: must be `sender`, `middle` or `receiver`")),
    }
}

fn duration(text: &str) -> Result<Duration, Error> {
    match read(text, "duration")? {
        Duration::ZERO => Err(InputError::of_argument("duration", text, "must be more than 0").into()),
        duration => Ok(duration),
    }
}

fn read<T: FromStr<Err: Display>>(text: &str, argument: &'static str) -> Result<T, Error> {
    Ok(text.parse().map_err(|why: T::Err| InputError::new(Location::argument(argument), why.to_string()))?)
}

fn within(value: i64, most: u32, argument: &'static str) -> Result<u32, Error> {
    let allowed = u32::try_from(value).ok().filter(|value| (1..=most).contains(value));
    let message = || format!("must be a whole number from 1 to {most}");
    Ok(allowed.ok_or_else(|| InputError::of_argument(argument, value, message()))?)
}
