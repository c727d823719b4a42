//! One run as a canonical text that has everything its results depend on, including the contents of files and built-in
//! paths.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use reknit_path::stages::Spec;
use reknit_sim::{Plan, Transports};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::setup::Setup;
use crate::{Error, RunSummary, ScenarioOptions, SimulateOptions};

const FORMAT: &str = "reknit-point-1";
/// Results may differ between sources.
const SOURCES: &str = env!("REKNIT_SOURCES");
/// The name of a point's scenario for errors.
const PLACE: &str = "point";

/// A run to execute, here or elsewhere. The same text gives the same results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    format: String,
    reknit: String,
    /// Digest of the sources from which the program was built.
    sources: String,
    /// The scenario with the path's own table, without keys that do not affect results.
    scenario: Table,
    variant: String,
    /// The user's own variants that the run uses.
    own_variants: BTreeMap<String, Table>,
    /// SHA-256 of the files that the path reads.
    files: BTreeMap<String, String>,
    seed: u64,
}

impl Point {
    /// The canonical text: JSON with sorted keys.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() // tables of text, numbers and lists can always be serialised
    }

    /// Its key in a store: SHA-256 of its text.
    pub fn key(&self) -> String {
        sha256(self.text().as_bytes())
    }

    /// Parses the text of [`Point::text`].
    ///
    /// # Errors
    /// If it is not such a text, or was made by another version.
    pub fn parse(text: &str) -> Result<Point, Error> {
        let point: Point = serde_json::from_str(text).map_err(|error| Error::Failed(format!("{PLACE}: {error}")))?;
        let ours = (FORMAT, env!("CARGO_PKG_VERSION"), SOURCES);
        if (point.format.as_str(), point.reknit.as_str(), point.sources.as_str()) == ours {
            Ok(point)
        } else {
            let (version, theirs) = (ours.1, &point.reknit);
            let message = format!("{PLACE}: made by reknit {theirs}, but this is reknit {version} (a different build)");
            Err(Error::Failed(format!("{message}; use the same build for all runs")))
        }
    }

    /// Runs it; `transports` are those that the program offers beside the variants. None if `stop` became true.
    ///
    /// # Errors
    /// If a file that its path reads is missing or has changed.
    pub fn run(&self, transports: &Transports, stop: &AtomicBool) -> Result<Option<RunSummary>, Error> {
        let plan = Plan::from_table(PLACE, self.scenario.clone())?;
        let tables = self.own_variants.iter().map(|(name, table)| (name.clone(), table.clone()));
        let scenario = ScenarioOptions {
            variant_tables: tables.collect(),
            transports: transports.clone(),
            ..ScenarioOptions::of(plan)
        };
        let options = SimulateOptions { scenario, variant: self.variant.clone(), seed: self.seed, sample_every: None };
        for (file, digest) in &self.files {
            if digest_of(file)? != *digest {
                return Err(Error::Failed(format!("{file}: differs from the file with which the sweep was started")));
            }
        }
        Ok(crate::simulate(&options, stop)?.map(|trajectory| trajectory.run))
    }

    pub(crate) fn with_seed(&self, seed: u64) -> Point {
        Point { seed, ..self.clone() }
    }

    /// The run of `variant` with the first seed, in a resolved scenario. `flows` are those of its table.
    pub(crate) fn new(setup: &Setup, flows: Option<Value>, variant: &str) -> Result<Point, Error> {
        let plan = &setup.plan;
        let mut scenario = Table::new();
        let path = plan.path_table()?;
        scenario.insert("path".to_owned(), Value::Table(numbers_only(path)));
        scenario.insert("duration".to_owned(), Value::String(format!("{} ns", setup.duration.as_nanos())));
        scenario.insert("warm_up".to_owned(), Value::String(format!("{} ns", plan.warm_up.as_nanos())));
        scenario.insert("in_order".to_owned(), Value::Boolean(plan.in_order));
        scenario.insert("phases".to_owned(), Value::String(plan.phases.to_string()));
        if let Some(loss) = plan.loss {
            scenario.insert("loss".to_owned(), Value::Float(loss.get()));
        }
        let set = plan.set.iter().filter_map(|assignment| assignment.split_once('='));
        let set = set.map(|(key, value)| (key.to_owned(), Value::String(value.to_owned())));
        scenario.insert("set".to_owned(), Value::Table(set.collect()));
        if let Some(flows) = flows {
            scenario.insert("flows".to_owned(), flows);
        }
        let variant = setup.find(variant);
        let variant = variant.map_err(|error| error.inside("variant").at(&plan.location))?.name;
        Ok(Point {
            format: FORMAT.to_owned(),
            reknit: env!("CARGO_PKG_VERSION").to_owned(),
            sources: SOURCES.to_owned(),
            scenario,
            own_variants: own_variants(setup, &variant),
            variant,
            files: files(setup)?,
            seed: 1,
        })
    }
}

/// Removes what does not affect results.
fn numbers_only(mut path: Table) -> Table {
    path.remove("description");
    path.remove("source");
    path
}

/// The user's own variants that the run uses, as tables.
fn own_variants(setup: &Setup, compared: &str) -> BTreeMap<String, Table> {
    let takes_part = |name: &str| {
        name == compared || setup.plan.groups.iter().any(|group| group.variant.as_deref().map(str::trim) == Some(name))
    };
    let used = setup.customs.iter().filter(|custom| takes_part(&custom.name));
    used.map(|custom| (custom.name.clone(), custom.table.clone())).collect()
}

fn files(setup: &Setup) -> Result<BTreeMap<String, String>, Error> {
    let mut found = BTreeMap::new();
    for named in setup.profile.forward.iter().chain(&setup.profile.reverse) {
        let file = match &named.spec {
            Spec::Recorded(recorded) => recorded.file.as_ref(),
            Spec::RateTrace(trace) => trace.file.as_ref(),
            _ => None,
        };
        if let Some(file) = file {
            let file = file.display().to_string();
            found.insert(file.clone(), digest_of(&file)?);
        }
    }
    Ok(found)
}

fn digest_of(file: &str) -> Result<String, Error> {
    let content = std::fs::read(file).map_err(|error| Error::Failed(format!("{file}: {error}")))?;
    Ok(sha256(&content))
}

fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
