//! A cell of a grid: its scenario with all names resolved. [`Grid::new`](super::Grid::new) calls it for each.

use std::path::PathBuf;

use reknit_config::{InputError, Location};
use reknit_sim::{Plan, Transports};
use toml::{Table, Value};

use super::{SETTINGS, wrong};
use crate::point::Point;
use crate::setup::Setup;
use crate::variant_setting::{self, VariantSetting};
use crate::{Error, ScenarioOptions, named_variant};

/// What all points have in common.
pub(super) struct Common<'a> {
    pub(super) location: &'a str,
    pub(super) variant_files: &'a [PathBuf],
    pub(super) set_by_argument: &'a [String],
    pub(super) transports: &'a Transports,
}

impl Common<'_> {
    /// The point of this scenario with the first seed, and warnings.
    pub(super) fn resolve(&self, mut table: Table) -> Result<(Point, Vec<String>), Error> {
        let location = self.location;
        let variant = table
            .remove("variant")
            .ok_or_else(|| wrong(location, "", "`variants` is missing; list the variants, or add an axis `variant`"))?;
        let settings: Vec<VariantSetting> = match table.remove(SETTINGS) {
            Some(Value::Table(set)) => {
                set.into_iter().filter_map(|(key, value)| VariantSetting::new(&key, value)).collect()
            }
            _ => Vec::new(),
        };
        let variant = if settings.is_empty() {
            variant
        } else {
            let customs = named_variant::load(self.variant_files)?;
            Value::Table(variant_setting::apply(&variant, &settings, &customs).map_err(|error| error.at(location))?)
        };
        // The plan extracts variants that are given as tables, and leaves their names.
        table.insert("variants".to_owned(), Value::Array(vec![variant]));
        let mut flows = table.get("flows").cloned();
        for set in flows.as_mut().and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(variant) = set.get_mut("variant")
                && let Some(name) = variant.get("name").cloned()
            {
                *variant = name;
            }
        }
        let mut plan = Plan::from_table(location, table)?;
        for (own, _) in plan.own_variants.iter_mut().filter(|(own, _)| own.ends_with(": variants[0]")) {
            *own = format!("{location}: variant");
        }
        let variant = plan.variants.first().cloned().unwrap_or_default();
        let setup = self.look_up(plan)?;
        Ok((Point::new(&setup, flows, &variant)?, setup.warnings()))
    }

    /// Resolves the names in a plan. An error names the argument `set` if it is wrong.
    fn look_up(&self, mut plan: Plan) -> Result<Setup, Error> {
        let options = |plan: Plan| {
            let (variant_files, transports) = (self.variant_files.to_vec(), self.transports.clone());
            ScenarioOptions { variant_files, transports, ..ScenarioOptions::of(plan) }
        };
        let error = match options(plan.clone()).look_up() {
            Ok(setup) => return Ok(setup),
            Err(error) => error,
        };
        plan.set.retain(|assignment| !self.set_by_argument.contains(assignment));
        let blamed = ScenarioOptions { set: self.set_by_argument.to_vec(), ..options(plan) }.look_up();
        match blamed {
            Err(Error::Input(error @ InputError { location: Location::Argument("set", _), .. })) => Err(error.into()),
            _ => Err(error),
        }
    }
}
