//! Parameters of variants that are set without a variant file: `variant.SEAM.PARAMETER`, as an axis or with `--set`.

use reknit_config::{InputError, KeyError};
use reknit_tcp::seams::Seam;
use reknit_variants::Custom;
use toml::{Table, Value};

/// How the key of such a parameter begins.
const PREFIX: &str = "variant.";

/// A parameter and its value.
#[derive(Clone, PartialEq, Debug)]
pub struct VariantSetting {
    /// The seam and the parameter, as in a variant file: `loss_detector.reo_wnd_divisor`.
    key: String,
    value: Value,
}

impl VariantSetting {
    /// The setting with this key, which begins with `variant.`; none if it is about something else.
    pub fn new(key: &str, value: Value) -> Option<VariantSetting> {
        let key = key.trim().strip_prefix(PREFIX)?;
        Some(VariantSetting { key: key.to_owned(), value })
    }

    /// The setting `KEY=VALUE`; none if it is about something else.
    pub fn parse(assignment: &str) -> Option<VariantSetting> {
        let (key, value) = assignment.split_once('=')?;
        VariantSetting::new(key, reknit_path::literal(value))
    }

    /// What the name of a variant with this setting ends in.
    fn label(&self) -> String {
        let parameter = self.key.rsplit('.').next().unwrap_or_default();
        let value = self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned);
        let allowed =
            |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c.to_ascii_lowercase() } else { '-' };
        format!("+{parameter}-{}", value.chars().map(allowed).collect::<String>())
    }
}

/// True if an axis `variant` with this table has parameters of variants, by seam, instead of named variants.
pub(crate) fn has_parameters(table: &Table) -> bool {
    !table.is_empty() && table.keys().all(|key| Seam::ALL.iter().any(|seam| seam.key() == key))
}

/// The table of a variant, given by its name or as a table, with these settings. `customs` are the user's own variants.
///
/// # Errors
/// If a key is no parameter of a seam. Its value is checked when the table is read.
pub(crate) fn apply(variant: &Value, settings: &[VariantSetting], customs: &[Custom]) -> Result<Table, KeyError> {
    let mut table = match variant {
        Value::Table(table) => table.clone(),
        name => {
            let name = name.as_str().unwrap_or_default().trim();
            let own = customs.iter().find(|custom| custom.name == name).map(|custom| custom.table.clone());
            let built_in = || [("base", name), ("name", name)].map(|(key, value)| (key.to_owned(), Value::from(value)));
            own.unwrap_or_else(|| built_in().into_iter().collect())
        }
    };
    let labels: String = settings.iter().map(VariantSetting::label).collect();
    let name = table.get("name").and_then(Value::as_str).unwrap_or_default();
    table.insert("name".to_owned(), format!("{name}{labels}").into());
    for VariantSetting { key, value } in settings {
        let wrong = |message: &str| KeyError::new(format!("{PREFIX}{key}"), message);
        let Some((seam, parameter)) = key.split_once('.').filter(|(_, parameter)| !parameter.contains('.')) else {
            return Err(wrong("expected variant.SEAM.PARAMETER, as in variant.loss_detector.reo_wnd_divisor"));
        };
        let part = table.entry(seam).or_insert_with(|| Value::Table(Table::new()));
        let part = part.as_table_mut().ok_or_else(|| wrong("this seam has a list of parts; use a variant file"))?;
        part.insert(parameter.to_owned(), value.clone());
    }
    Ok(table)
}

/// The variant with this name and these settings.
///
/// # Errors
/// Names the variant and the key, and says what is allowed.
pub(crate) fn changed(name: &str, settings: &[VariantSetting], customs: &[Custom]) -> Result<Custom, InputError> {
    let location = format!("variant `{name}`");
    let table = apply(&Value::from(name), settings, customs).map_err(|error| error.at(&location))?;
    Custom::from_table(&location, table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(assignments: &[&str]) -> Vec<VariantSetting> {
        assignments.iter().filter_map(|assignment| VariantSetting::parse(assignment)).collect()
    }

    #[test]
    fn a_setting_changes_a_parameter_of_the_variant_and_its_name() {
        let settings = set(&["variant.loss_detector.reo_wnd_divisor=16", "forward.link.rate=1 Mbit/s"]);
        let custom = changed("rack", &settings, &[]).unwrap();
        assert_eq!((custom.name.as_str(), custom.base.name), ("rack+reo_wnd_divisor-16", "rack"));
        let own = Custom::parse("own", "name = \"own\"\nbase = \"rack\"\n[loss_detector]\ntlp = false\n").unwrap();
        let both = changed("own", &settings, std::slice::from_ref(&own)).unwrap();
        assert_eq!(both.name, "own+reo_wnd_divisor-16");
        assert_eq!(both.table["loss_detector"]["tlp"].as_bool(), Some(false));
        let time = changed("rr-ta", &set(&["variant.dup_thresh.life=20 s"]), &[]).unwrap();
        assert_eq!(time.name, "rr-ta+life-20-s");
    }

    #[test]
    fn errors_name_the_variant_and_the_key() {
        for (name, assignment, says) in [
            ("sack", "variant.loss_detector.reo_wnd_divisor=4", "variant `sack`: loss_detector.reo_wnd_divisor: "),
            ("rack", "variant.loss_detektor.tlp=false", "variant `rack`: loss_detektor: "),
            ("rack", "variant.loss_detector=4", "variant.loss_detector: expected variant.SEAM.PARAMETER"),
            ("rack", "variant.loss_detector.tlp=maybe", "variant `rack`: loss_detector.tlp: "),
        ] {
            let error = changed(name, &set(&[assignment]), &[]).unwrap_err().to_string();
            assert!(error.contains(says), "{error:?} does not contain {says:?}");
        }
    }
}
