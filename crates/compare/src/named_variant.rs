//! Variants by name: built-in variants, and those of the user's files.

use std::path::PathBuf;
use std::sync::Arc;

use reknit_config::{InputError, KeyError};
use reknit_sim::Transport;
use reknit_tcp::Info;
use reknit_variants::{Composition, Custom, FAMILIES, Family, VARIANTS, Variant, requirements};
use toml::Table;

use crate::{Error, names};

/// A variant in a comparison.
#[derive(Clone, Debug)]
pub struct NamedVariant {
    /// Its name.
    pub name: String,
    /// Its parts.
    pub composition: Arc<Composition>,
    /// The transport that runs instead of reknit's TCP with these parts.
    pub transport: Option<Arc<dyn Transport>>,
}

impl NamedVariant {
    /// A built-in variant.
    pub fn built_in(variant: &Variant) -> NamedVariant {
        NamedVariant::of(variant.name, Arc::new((variant.compose)()))
    }

    /// A variant from a file.
    pub fn custom(custom: &Custom) -> NamedVariant {
        NamedVariant::of(&custom.name, Arc::new(custom.composition.clone()))
    }

    /// Another transport.
    pub fn transport(transport: &Arc<dyn Transport>) -> NamedVariant {
        NamedVariant { transport: Some(transport.clone()), ..NamedVariant::of(transport.name(), Arc::default()) }
    }

    /// A variant with this name and these parts.
    pub fn of(name: &str, composition: Arc<Composition>) -> NamedVariant {
        NamedVariant { name: name.to_owned(), composition, transport: None }
    }

    /// Its name and its parts with their parameters, as text that does not change between runs of the program.
    pub fn parts(&self) -> String {
        if let Some(transport) = &self.transport {
            return format!("{}: {}", self.name, transport.about());
        }
        let parts: Vec<String> =
            self.composition.all_parts().map(|(_, part)| format!("{} {:?}", part.algorithm, part.parameters)).collect();
        format!("{}: {}", self.name, parts.join("; "))
    }

    /// What it does without because the other end does not support it; empty before there is a connection.
    pub fn fallbacks(&self, info: &Info) -> Vec<String> {
        if info.state >= reknit_tcp::State::Established {
            requirements::fallbacks(&self.composition, info)
        } else {
            Vec::new()
        }
    }
}

/// Reads variant files.
///
/// # Errors
/// Names the file, the key, and what is allowed.
pub fn load(files: &[PathBuf]) -> Result<Vec<Custom>, Error> {
    let mut customs: Vec<Custom> = Vec::new();
    for file in files {
        let custom = Custom::load(file)?;
        if customs.iter().any(|other| other.name == custom.name) {
            let message = format!("another file also defines the variant `{}`", custom.name);
            return Err(KeyError::new("name", message).at(&file.display().to_string()).into());
        }
        customs.push(custom);
    }
    Ok(customs)
}

/// Reads variants from a scenario, each with its location, in addition to those of files.
///
/// # Errors
/// Names the location, the key, and what is allowed.
pub fn read<'a>(
    tables: impl Iterator<Item = &'a (String, Table)>,
    mut customs: Vec<Custom>,
) -> Result<Vec<Custom>, Error> {
    let mut known: Vec<&Table> = Vec::new();
    for (location, table) in tables {
        if known.contains(&table) {
            continue;
        }
        let custom = Custom::from_table(location, table.clone())?;
        if customs.iter().any(|other| other.name == custom.name) {
            let message = format!("there is already a variant `{}`", custom.name);
            return Err(KeyError::new("name", message).at(location).into());
        }
        customs.push(custom);
        known.push(table);
    }
    Ok(customs)
}

/// Finds the variant `name`; the user's own come first.
///
/// # Errors
/// If there is none. Suggests similar names.
pub fn find(name: &str, customs: &[Custom]) -> Result<NamedVariant, KeyError> {
    if let Some(custom) = customs.iter().find(|custom| custom.name == name.trim()) {
        return Ok(NamedVariant::custom(custom));
    }
    if let Ok(variant) = reknit_variants::find(name) {
        return Ok(NamedVariant::built_in(variant));
    }
    if let Some(message) = kernel(name) {
        return Err(KeyError::new("", message));
    }
    let own = customs.iter().map(|custom| custom.name.as_str());
    let hint = reknit_variants::hint(name, &mut own.clone());
    let own: Vec<&str> = own.collect();
    let own = if own.is_empty() { String::new() } else { format!(", and variant files define {}", own.join(", ")) };
    Err(KeyError::new("", format!("unknown variant `{name}`{hint}{own}")))
}

/// The error for a kernel's TCP in a simulation.
fn kernel(name: &str) -> Option<String> {
    const CONGESTION_CONTROLS: [&str; 4] = ["dctcp", "htcp", "vegas", "westwood"];
    let wanted = name.trim().strip_prefix("kernel:").or_else(|| {
        let name = name.trim();
        CONGESTION_CONTROLS.contains(&name).then_some(name)
    })?;
    let alike = ["linux", "rack"].into_iter().find(|name| reknit_variants::find(name).is_ok()).unwrap_or("sack");
    Some(format!(
        "`{name}`: kernels do not run in simulation; the variant most like Linux is `{alike}`, and `reknit testbed --variants \
         kernel:{wanted}` runs this machine's kernel, live"
    ))
}

/// What selects a family, followed by its name. A family that has no variant with its name is also selected by the name alone.
const FAMILY: &str = "family:";

/// True if `name` may stand for several variants.
pub fn is_group(name: &str) -> bool {
    let is_family = || reknit_variants::find(name).is_err() && family(name).is_some();
    names::is_pattern(name) || name.starts_with(FAMILY) || is_family()
}

fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.key == name)
}

/// The names of all families, for messages.
pub fn families() -> String {
    FAMILIES.iter().map(|family| family.key).collect::<Vec<_>>().join(", ")
}

/// The variants that `name` stands for: a single one, those that match it as a pattern, or those of a family.
///
/// # Errors
/// If there are none.
pub fn expand(name: &str, customs: &[Custom]) -> Result<Vec<NamedVariant>, KeyError> {
    let name = name.trim();
    let members = |family: &Family| family.variants.iter().map(NamedVariant::built_in);
    if let Some(key) = name.strip_prefix(FAMILY) {
        let keys: Vec<&str> = FAMILIES.iter().map(|family| family.key).collect();
        let unknown = || KeyError::new("", reknit_config::unknown(&format!("unknown family `{key}`"), key, &keys));
        return Ok(members(family(key).ok_or_else(unknown)?).collect());
    }
    if names::is_pattern(name) {
        let own = customs.iter().filter(|custom| names::matches(name, &custom.name)).map(NamedVariant::custom);
        let built_in = VARIANTS.iter().filter(|variant| names::matches(name, variant.name)).map(NamedVariant::built_in);
        let found: Vec<NamedVariant> = own.chain(built_in).collect();
        let none = format!("no variant matches `{name}`; `reknit variants` lists them");
        return if found.is_empty() { Err(KeyError::new("", none)) } else { Ok(found) };
    }
    match (find(name, customs), family(name)) {
        (Err(_), Some(family)) => Ok(members(family).collect()),
        (found, _) => found.map(|variant| vec![variant]),
    }
}

/// The variants to compare: what `expand` finds for the given names, and those `from_files`. Without names, the files' bases, or
/// all variants. `refuse` adds the location of an unknown name.
///
/// # Errors
/// If a name is unknown.
pub fn choose(
    refuse: impl Fn(KeyError) -> InputError,
    names: &[String],
    expand: impl Fn(&str) -> Result<Vec<NamedVariant>, KeyError>,
    from_files: &[Custom],
) -> Result<Vec<NamedVariant>, Error> {
    let mut chosen: Vec<NamedVariant> = Vec::new();
    if names.is_empty() {
        let is_base = |v: &&Variant| from_files.iter().any(|custom| custom.base.name == v.name);
        let is_wanted = |v: &&Variant| from_files.is_empty() || is_base(v);
        chosen.extend(VARIANTS.iter().filter(is_wanted).map(NamedVariant::built_in));
    }
    for name in names {
        for variant in expand(name).map_err(&refuse)? {
            if chosen.iter().all(|other| other.name != variant.name) {
                chosen.push(variant);
            }
        }
    }
    for custom in from_files {
        if chosen.iter().all(|other| other.name != custom.name) {
            chosen.push(NamedVariant::custom(custom));
        }
    }
    Ok(chosen)
}
