//! The list of variants as data.

use reknit_tcp::seams::Seam;
use reknit_variants::parameter::{self, Parameter};
use reknit_variants::slot::Part;
use reknit_variants::{Variant, composition};
use schemars::JsonSchema;
use serde::Serialize;

use crate::about::fallbacks;

/// All variants, as the JSON document of `docs/reference/json.md`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Document {
    /// Version of the document's format.
    pub format: &'static str,
    /// What made it: the version, the commit, and a digest of the sources that the numbers depend on.
    pub reknit: &'static str,
    /// One entry for each variant.
    pub variants: Vec<Entry>,
}

/// One variant.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// A summary.
    pub summary: &'static str,
    /// What it does about reordering.
    pub family: String,
    /// Where it is published.
    pub source: &'static str,
    /// Which end it changes.
    pub side: String,
    /// What the other end must support.
    pub peer_needs: &'static str,
    /// What happens if it does not, for each of these.
    pub without_peer: Vec<String>,
    /// How faithfully it follows its source.
    pub status: String,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Its algorithms.
    pub parts: Vec<PartEntry>,
}

/// An algorithm of a variant.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PartEntry {
    /// The seam, which is the decision that it makes.
    pub seam: &'static str,
    /// Its name.
    pub algorithm: String,
    /// A description.
    pub about: String,
    /// Its parameters.
    pub parameters: Vec<ParameterEntry>,
}

/// One parameter of an algorithm.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ParameterEntry {
    /// Its name.
    pub name: String,
    /// Its value in this variant, as in a variant file but without quotes.
    pub value: String,
    /// The default value.
    pub default: Option<String>,
    /// The unit of a bare number.
    pub unit: Option<&'static str>,
    /// The meaning.
    pub meaning: String,
    /// The allowed words, if it is one of a fixed set.
    pub choices: Vec<String>,
    /// The smallest and the largest allowed number, if it is a number.
    pub range: Option<[f64; 2]>,
}

impl Document {
    /// The document for these variants.
    pub fn of(variants: &[Variant]) -> Document {
        Document { format: "reknit-variants-1", reknit: crate::VERSION, variants: variants.iter().map(entry).collect() }
    }
}

fn entry(variant: &Variant) -> Entry {
    let composition = (variant.compose)();
    Entry {
        name: variant.name,
        aliases: variant.aliases,
        summary: variant.summary,
        family: variant.family().to_string(),
        source: variant.source,
        side: variant.side.to_string(),
        peer_needs: variant.peer_needs,
        without_peer: fallbacks(variant, &composition),
        status: variant.status.to_string(),
        parts: composition.all_parts().map(|(seam, part)| part_entry(seam, part)).collect(),
    }
}

fn part_entry(seam: Seam, part: Part) -> PartEntry {
    let known = composition::algorithm(seam, &part.algorithm);
    let parameter = |parameter: &Parameter| ParameterEntry {
        value: part.parameters.get(&parameter.name).map_or(String::new(), parameter::plain),
        name: parameter.name.clone(),
        default: parameter.default.clone(),
        unit: parameter.unit,
        range: parameter.range.as_ref().map(|range| [*range.start(), *range.end()]),
        meaning: parameter.meaning.clone(),
        choices: parameter.choices.iter().map(|(word, _)| word.clone()).collect(),
    };
    PartEntry {
        seam: seam.key(),
        about: known.map_or(String::new(), |known| known.about.clone()),
        parameters: known.iter().flat_map(|known| &known.parameters).map(parameter).collect(),
        algorithm: part.algorithm,
    }
}
