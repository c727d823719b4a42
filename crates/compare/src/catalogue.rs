//! The list of variants, for machines.

use reknit_variants::part;
use reknit_variants::part::{Face, Parameter};
use reknit_variants::seam::Seam;
use reknit_variants::{Variant, rules};
use serde::Serialize;

/// All variants: the JSON document (`docs/json.md`).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Document {
    /// Version of the document's form.
    pub format: &'static str,
    /// Version of the program.
    pub reknit: &'static str,
    /// One for each.
    pub variants: Vec<Entry>,
}

/// One variant.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Entry {
    /// What it is called.
    pub name: &'static str,
    /// What else it is called.
    pub aliases: &'static [&'static str],
    /// What it is.
    pub summary: &'static str,
    /// What it does about reordering.
    pub family: String,
    /// Where it comes from.
    pub source: &'static str,
    /// Which end it changes.
    pub side: String,
    /// What the other end must support.
    pub peer_needs: &'static str,
    /// What happens if it does not, for each need.
    pub without_peer: Vec<String>,
    /// How far it follows its source.
    pub status: String,
    /// The algorithms that it consists of.
    pub parts: Vec<PartEntry>,
}

/// One algorithm in it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PartEntry {
    /// The question that it answers.
    pub seam: &'static str,
    /// Its name.
    pub algorithm: String,
    /// What it is.
    pub about: String,
    /// What can be set.
    pub parameters: Vec<ParameterEntry>,
}

/// One parameter of an algorithm.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ParameterEntry {
    /// What it is called.
    pub name: String,
    /// Its value in this variant, as in a variant file but without quotes.
    pub value: String,
    /// What it is if nothing is said.
    pub default: Option<String>,
    /// Of a bare number.
    pub unit: Option<&'static str>,
    /// What it is for.
    pub meaning: String,
    /// The words that are allowed, if only certain ones are.
    pub choices: Vec<String>,
    /// The least and the largest number that is allowed, if it is a number.
    pub range: Option<[f64; 2]>,
}

impl Document {
    /// Of these variants.
    pub fn of(variants: &[Variant]) -> Document {
        Document {
            format: "reknit-variants-1",
            reknit: env!("CARGO_PKG_VERSION"),
            variants: variants.iter().map(entry).collect(),
        }
    }
}

fn entry(variant: &Variant) -> Entry {
    let composition = (variant.compose)();
    let parts = Seam::ALL.iter().flat_map(|seam| composition.faces(*seam).into_iter().map(|face| (*seam, face)));
    Entry {
        name: variant.name,
        aliases: variant.aliases,
        summary: variant.summary,
        family: variant.family().to_string(),
        source: variant.source,
        side: variant.side.to_string(),
        peer_needs: variant.peer_needs,
        without_peer: rules::possible_fall_backs(&composition),
        status: variant.status.to_string(),
        parts: parts.map(|(seam, face)| part_entry(seam, face)).collect(),
    }
}

fn part_entry(seam: Seam, face: Face) -> PartEntry {
    let form = face.form();
    let parameter = |parameter: Parameter| ParameterEntry {
        value: face.parameters.get(&parameter.name).map_or(String::new(), part::plain),
        name: parameter.name,
        default: parameter.default,
        unit: parameter.unit,
        range: parameter.range.map(|range| [*range.start(), *range.end()]),
        meaning: parameter.meaning,
        choices: parameter.choices.into_iter().map(|(word, _)| word).collect(),
    };
    PartEntry {
        seam: seam.key(),
        about: form.about,
        parameters: form.parameters.into_iter().map(parameter).collect(),
        algorithm: face.algorithm,
    }
}
