//! From what Python says to a question. What the command's options refuse is refused here in the same words.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use pyo3::types::PyDict;
use pyo3::{Bound, FromPyObject};
use reknit_compare::{Error, Question, Setting, Single};
use reknit_sim::Plan;
use reknit_units::{Duration, Share};

const MOST_SEEDS: u32 = 10_000;
const MOST_FLOWS: u32 = 100_000;
/// What errors call a scenario that stands in no file.
const SCENARIO: &str = "scenario";

/// Where, and who else is there: a dictionary. Without a scenario there are `flows` bulk flows.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct Place<'py> {
    path: Option<String>,
    scenario: Option<Described<'py>>,
    set: Vec<String>,
    loss: Option<String>,
    in_order: bool,
    flows: i64,
}

/// A scenario: the name of a file, or what would stand in it.
#[derive(FromPyObject, Debug)]
pub(crate) enum Described<'py> {
    File(PathBuf),
    Here(Bound<'py, PyDict>),
}

/// Who, and for how long: a dictionary.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct Request {
    variants: Vec<String>,
    variant_files: Vec<PathBuf>,
    duration: Option<String>,
}

impl Request {
    pub(crate) fn question(self, place: Place<'_>, seeds: Option<i64>) -> Result<Question, Error> {
        Ok(Question {
            seeds: seeds.map(|seeds| within(seeds, MOST_SEEDS, "--seeds <N>")).transpose()?,
            setting: setting(place, self.duration.as_deref(), self.variant_files)?,
            variants: self.variants,
        })
    }

    /// Of the first variant.
    pub(crate) fn single(self, place: Place<'_>, seed: u64, sample_every: Option<&str>) -> Result<Single, Error> {
        Ok(Single {
            setting: setting(place, self.duration.as_deref(), self.variant_files)?,
            variant: self.variants.into_iter().next().unwrap_or_default(),
            seed,
            sample_every: sample_every.map(|text| read(text, "sample_every")).transpose()?,
        })
    }
}

fn setting(place: Place<'_>, duration: Option<&str>, variant_files: Vec<PathBuf>) -> Result<Setting, Error> {
    let flows = within(place.flows, MOST_FLOWS, "--flows <N>")?;
    Ok(Setting {
        plan: place.scenario.map_or_else(|| Ok(Plan::bulk(flows)), plan)?,
        path: place.path,
        set: place.set,
        loss: place.loss.map(|text| read::<Share>(&text, "--loss <SHARE>")).transpose()?,
        in_order: place.in_order,
        duration: duration.map(|text| read::<Duration>(text, "--duration <TIME>")).transpose()?,
        variant_files,
    })
}

fn plan(scenario: Described<'_>) -> Result<Plan, Error> {
    match scenario {
        Described::File(file) => Plan::load(&file).map_err(Error::Usage),
        Described::Here(mapping) => {
            let table = pythonize::depythonize(&mapping);
            let table = table.map_err(|error| Error::Usage(format!("{SCENARIO}: {error}")))?;
            Plan::from_table(SCENARIO, table).map_err(Error::Usage)
        }
    }
}

fn read<T: FromStr<Err: Display>>(text: &str, option: &str) -> Result<T, Error> {
    text.parse().map_err(|why| invalid(text, option, &why))
}

fn within(value: i64, most: u32, option: &str) -> Result<u32, Error> {
    let allowed = u32::try_from(value).ok().filter(|value| (1..=most).contains(value));
    allowed.ok_or_else(|| invalid(value, option, &format_args!("write a whole number from 1 to {most}")))
}

fn invalid(value: impl Display, option: &str, why: &dyn Display) -> Error {
    Error::Usage(format!("invalid value '{value}' for '{option}': {why}"))
}
