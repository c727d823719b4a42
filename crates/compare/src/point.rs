//! One run with everything that its numbers depend on, as one canonical text: files and built-in paths by what is in them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use reknit_path::stages::Spec;
use reknit_sim::Plan;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::setup::Setup;
use crate::{Error, RunSummary, ScenarioOptions, SimulateOptions, named_variant};

const FORMAT: &str = "reknit-point-1";
/// Other sources may give other numbers.
const SOURCES: &str = env!("REKNIT_SOURCES");
/// What errors call the scenario of a point.
const PLACE: &str = "point";

/// A run to be made, here or elsewhere. The same text gives the same numbers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    format: String,
    reknit: String,
    /// Digest of the sources that it was built from.
    sources: String,
    /// With the path's own table, and without what does not change the numbers.
    scenario: Table,
    variant: String,
    /// The user's own variants that take part.
    own_variants: BTreeMap<String, Table>,
    /// SHA-256 of files that the path reads.
    files: BTreeMap<String, String>,
    seed: u64,
}

impl Point {
    /// The one text that stands for it: JSON with sorted keys.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() // tables of text, numbers and lists can always be written
    }

    /// Its name in a store: SHA-256 of its text.
    pub fn key(&self) -> String {
        sha256(self.text().as_bytes())
    }

    /// What [`Point::text`] has written.
    ///
    /// # Errors
    /// If it is none, or that of another version.
    pub fn parse(text: &str) -> Result<Point, Error> {
        let point: Point = serde_json::from_str(text).map_err(|error| Error::Failed(format!("{PLACE}: {error}")))?;
        let ours = (FORMAT, env!("CARGO_PKG_VERSION"), SOURCES);
        if (point.format.as_str(), point.reknit.as_str(), point.sources.as_str()) == ours {
            Ok(point)
        } else {
            let (version, theirs) = (ours.1, &point.reknit);
            let message = format!("{PLACE}: it is of reknit {theirs}, this is reknit {version} or another build of it");
            Err(Error::Failed(format!("{message}; use the same where the runs are")))
        }
    }

    /// Runs it. None if `stop` became true on the way.
    ///
    /// # Errors
    /// If a file that its path reads is not there, or another one.
    pub fn run(&self, stop: &AtomicBool) -> Result<Option<RunSummary>, Error> {
        let plan = Plan::from_table(PLACE, self.scenario.clone())?;
        let tables = self.own_variants.iter().map(|(name, table)| (name.clone(), table.clone()));
        let scenario = ScenarioOptions { variant_tables: tables.collect(), ..ScenarioOptions::of(plan) };
        let options = SimulateOptions { scenario, variant: self.variant.clone(), seed: self.seed, sample_every: None };
        for (file, digest) in &self.files {
            if digest_of(file)? != *digest {
                return Err(Error::Failed(format!("{file}: not the same as where the sweep was begun")));
            }
        }
        Ok(crate::simulate(&options, stop)?.map(|trajectory| trajectory.run))
    }

    pub(crate) fn with_seed(&self, seed: u64) -> Point {
        Point { seed, ..self.clone() }
    }

    /// The run of `variant` with the first seed, in a scenario that has been looked up. `flows` are those of its table.
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
        let variant = named_variant::find(variant, &setup.customs);
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

/// What changes no number goes.
fn numbers_only(mut path: Table) -> Table {
    path.remove("description");
    path.remove("source");
    path
}

/// Those that take part, as tables.
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
        if let Spec::Recorded(recorded) = &named.spec
            && let Some(file) = &recorded.file
        {
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
