//! From what Python says to a question. What the command's options refuse is refused here in the same words.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use pyo3::FromPyObject;
use reknit_compare::{Error, Question, Setting, Single};
use reknit_units::{Duration, Share};

const MOST_SEEDS: u32 = 10_000;
const MOST_FLOWS: u32 = 100_000;

/// Where: a dictionary.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct Place {
    path: String,
    set: Vec<String>,
    loss: Option<String>,
    in_order: bool,
    flows: i64,
}

/// Who, and for how long: a dictionary.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct Request {
    variants: Vec<String>,
    variant_files: Vec<PathBuf>,
    duration: String,
}

impl Request {
    pub(crate) fn question(self, place: Place, seeds: i64) -> Result<Question, Error> {
        Ok(Question {
            setting: setting(place, &self.duration)?,
            variants: self.variants,
            variant_files: self.variant_files,
            seeds: within(seeds, MOST_SEEDS, "--seeds <N>")?,
        })
    }

    /// Of the first variant.
    pub(crate) fn single(self, place: Place, seed: u64, sample_every: Option<&str>) -> Result<Single, Error> {
        Ok(Single {
            setting: setting(place, &self.duration)?,
            variant: self.variants.into_iter().next().unwrap_or_default(),
            variant_files: self.variant_files,
            seed,
            sample_every: sample_every.map(|text| read(text, "sample_every")).transpose()?,
        })
    }
}

fn setting(place: Place, duration: &str) -> Result<Setting, Error> {
    Ok(Setting {
        path: place.path,
        set: place.set,
        loss: place.loss.map(|text| read::<Share>(&text, "--loss <SHARE>")).transpose()?,
        in_order: place.in_order,
        flows: within(place.flows, MOST_FLOWS, "--flows <N>")?,
        duration: read::<Duration>(duration, "--duration <TIME>")?,
    })
}

fn read<T: FromStr<Err: Display>>(text: &str, option: &str) -> Result<T, Error> {
    text.parse().map_err(|why| invalid(text, option, &why))
}

fn within(value: i64, most: u32, option: &str) -> Result<u32, Error> {
    let allowed = u32::try_from(value).ok().filter(|value| (1..=most).contains(value));
    allowed.ok_or_else(|| invalid(value, option, &format_args!("{value} is not in 1..={most}")))
}

fn invalid(value: impl Display, option: &str, why: &dyn Display) -> Error {
    Error::Usage(format!("invalid value '{value}' for '{option}': {why}"))
}
