//! Variants defined by users in TOML: a base, and other algorithms or parameters for some seams.
//!
//! ```toml
//! name = "my-rack"
//! base = "rack"                       # default: `sack`
//! summary = "rack with a larger reordering window and without probes"
//!
//! [loss_detector]                     # the algorithm of the base with other parameters
//! reo_wnd_divisor = 2
//! tlp = false
//!
//! [congestion_control]                # another algorithm
//! algorithm = "reno"
//!
//! [[spurious_detectors]]              # a seam with several parts: this list replaces that of the base
//! algorithm = "dsack"
//! ```

use std::fmt::Write;
use std::path::Path;

use reknit_config::{InputError, KeyError, text};
use toml::Table;

use crate::composition::{self, Composition};
use crate::parameter::Parameter;
use crate::registry;
use crate::requirements;
use crate::slot::Part;
use crate::variant::Variant;
use reknit_tcp::seams::Seam;

/// A variant from a file.
#[derive(Clone, Debug)]
pub struct Custom {
    /// Its name in results.
    pub name: String,
    /// The variant on which it is based.
    pub base: &'static Variant,
    /// A one-line description.
    pub summary: String,
    /// Its plug-ins.
    pub composition: Composition,
    /// Warnings about parts that work against each other; each names the file and the key.
    pub warnings: Vec<String>,
    /// The table from which it was read.
    pub table: Table,
}

impl Custom {
    /// The variant in the file `path`.
    ///
    /// # Errors
    /// If the file cannot be read or does not describe a variant.
    pub fn load(path: &Path) -> Result<Custom, InputError> {
        let place = path.display().to_string();
        match reknit_config::read_file(path, reknit_config::LARGEST_FILE) {
            Ok(text) => Custom::parse(&place, &text),
            Err(error) => Err(InputError::new(&place, error)),
        }
    }

    /// The variant that `text` describes; errors name `place`.
    ///
    /// # Errors
    /// If `text` is invalid; the error names the line (for invalid TOML) or the key, and what is allowed.
    pub fn parse(place: &str, text: &str) -> Result<Custom, InputError> {
        Custom::from_table(place, reknit_config::parse(place, text)?)
    }

    /// The variant in a table of another file, or of no file; errors name `place`.
    ///
    /// # Errors
    /// If `table` is invalid; the error names the key, and what is allowed.
    pub fn from_table(place: &str, table: Table) -> Result<Custom, InputError> {
        let mut custom = Custom::read(table.clone()).map_err(|error| error.at(place))?;
        let findings = requirements::check(&custom.composition);
        if let Some(error) = findings.errors.into_iter().next() {
            return Err(InputError::new(place, error));
        }
        custom.table = table;
        custom.warnings = findings.warnings.into_iter().map(|warning| format!("{place}: {warning}")).collect();
        Ok(custom)
    }

    fn read(mut table: Table) -> Result<Custom, KeyError> {
        let name = name(text(&mut table, "name")?)?;
        let base = text(&mut table, "base")?.unwrap_or_else(|| "sack".to_owned());
        let base = registry::find(&base).map_err(|error| KeyError::new("base", error.to_string()))?;
        let summary = text(&mut table, "summary")?.unwrap_or_else(|| format!("{} with changes", base.name));
        let mut composition = (base.compose)();
        composition.sack = reknit_config::switch(&mut table, "sack")?.unwrap_or(composition.sack);
        composition.timestamps = reknit_config::switch(&mut table, "timestamps")?.or(composition.timestamps);
        for seam in Seam::ALL {
            if let Some(value) = table.remove(seam.key()) {
                composition.fill(seam, value)?;
            }
        }
        composition.settle();
        match table.keys().next() {
            Some(key) => Err(KeyError::new(key, reknit_config::unknown("unknown key", key, &allowed_keys()))),
            None => Ok(Custom { name, base, summary, composition, warnings: Vec::new(), table }),
        }
    }
}

fn allowed_keys() -> Vec<&'static str> {
    let seams = Seam::ALL.iter().map(|seam| seam.key());
    ["name", "base", "summary", "timestamps", "sack"].into_iter().chain(seams).collect()
}

/// Names are used in lists and file names, together with those of the built-in variants.
fn name(given: Option<String>) -> Result<String, KeyError> {
    const ALLOWED: &str = "lower-case letters, digits, `-`, `_`, `.` and `+`, beginning with a letter";
    let refuse = |message: String| Err(KeyError::new("name", message));
    let Some(name) = given else { return refuse(format!("missing; a name consists of {ALLOWED}")) };
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.+".contains(c);
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_allowed) {
        return refuse(format!("invalid variant name `{name}`; allowed are {ALLOWED}"));
    }
    match registry::find(&name) {
        Ok(variant) if variant.name == name => refuse(format!("`{name}` is a built-in variant; choose another name")),
        Ok(variant) => refuse(format!("`{name}` is the built-in variant `{}`; choose another name", variant.name)),
        Err(_) => Ok(name),
    }
}

/// A complete variant file: every part of `composition` with every parameter and its meaning.
pub fn write(name: &str, base: &Variant, composition: &Composition) -> String {
    let mut out = format!(
        "# A variant file; try it with: reknit compare --path PATH --variant-file FILE\n\
         # Settings that are equal to those of `{}` may be left out.\n\
         name = \"{name}\"\nbase = \"{}\"\nsummary = \"{} with changes\"\n",
        base.name, base.name, base.name
    );
    let _ = writeln!(out, "sack = {}", composition.sack);
    if let Some(timestamps) = composition.timestamps {
        let _ = writeln!(out, "timestamps = {timestamps}");
    }
    let (filled, empty): (Vec<Seam>, Vec<Seam>) =
        Seam::ALL.into_iter().partition(|seam| !composition.parts(*seam).is_empty());
    for seam in empty {
        let _ = writeln!(out, "{seam} = []  # {}", seam.question());
    }
    for seam in filled {
        for part in composition.parts(seam) {
            write_part(&mut out, seam, &part);
        }
    }
    out
}

fn write_part(out: &mut String, seam: Seam, part: &Part) {
    let title = if seam.takes_many() { format!("[[{seam}]]") } else { format!("[{seam}]") };
    let _ = write!(out, "\n{title}  # {}\nalgorithm = \"{}\"\n", seam.question(), part.algorithm);
    let known = composition::algorithm(seam, &part.algorithm).map_or(&[][..], |known| &known.parameters);
    for (key, value) in &part.parameters {
        if let Some(parameter) = known.iter().find(|parameter| parameter.name == *key) {
            for line in comment(parameter) {
                let _ = writeln!(out, "# {line}");
            }
        }
        let _ = writeln!(out, "{key} = {value}");
    }
}

/// The meaning of a parameter, in lines of at most 98 characters.
fn comment(parameter: &Parameter) -> Vec<String> {
    let mut text = parameter.meaning_and_range();
    if !parameter.choices.is_empty() {
        let words: Vec<String> = parameter.choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let _ = write!(text, " One of {}.", words.join(", "));
    }
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if lines.last().is_some_and(|line| line.chars().count() + 1 + word.chars().count() > 98) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
