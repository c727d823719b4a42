//! Descriptions of variants, for the command and for the pages of `docs/reference/algorithms`.

use std::fmt::Write;

use reknit_tcp::seams::Seam;
use reknit_variants::parameter::{self, Parameter};
use reknit_variants::slot::Part;
use reknit_variants::{Composition, Variant, composition, requirements};

/// The main facts about a variant, as names and texts.
pub fn facts(variant: &Variant, composition: &Composition) -> Vec<(String, String)> {
    let mut facts = vec![
        ("source", variant.source.to_owned()),
        ("changes", variant.side.to_string()),
        ("peer needs", variant.peer_needs.to_owned()),
        ("fallback", fallbacks(variant, composition).join("; ")),
        ("status", variant.status.to_string()),
        ("also called", variant.aliases.join(", ")),
    ];
    facts.retain(|(_, fact)| !fact.is_empty());
    facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
}

/// The fallback for each need that the peer does not meet. Empty for variants that need nothing from the peer.
pub(crate) fn fallbacks(variant: &Variant, composition: &Composition) -> Vec<String> {
    if variant.peer_needs == "nothing" { Vec::new() } else { requirements::possible_fallbacks(composition) }
}

/// Each seam with its algorithm and a description; seams that differ from the base are marked.
pub fn parts_by_seam(composition: &Composition) -> Vec<(String, String)> {
    let base = Composition::default();
    let mut items = Vec::new();
    for seam in Seam::ALL {
        let (own, usual) = (composition.parts(seam), base.parts(seam));
        let mark = if own == usual { ' ' } else { '*' };
        let about = |part: &Part| composition::algorithm(seam, &part.algorithm).map_or("", |known| &known.about);
        let describe = |part: &Part| format!("`{}`: {}", part.algorithm, about(part));
        let own: Vec<String> = own.iter().map(describe).collect();
        let own = if own.is_empty() { "none".to_owned() } else { own.join("; ") };
        items.push((format!("{mark} {seam}"), own));
    }
    items
}

/// A parameter and its value in a variant.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The seam of its algorithm.
    pub seam: Seam,
    /// The parameter.
    pub parameter: Parameter,
    /// Its value in the variant.
    pub value: String,
}

impl Setting {
    /// The value with its unit, and the default if the value differs from it.
    pub fn shown(&self) -> String {
        let value = self.parameter.show(&self.value);
        match &self.parameter.default {
            Some(default) if default == "null" && self.value.is_empty() => "not set".to_owned(),
            Some(default) if *default != self.value => format!("{value} (default {default})"),
            _ => value,
        }
    }

    /// The meaning, and the numbers or words that are allowed.
    pub fn meaning(&self) -> String {
        let mut text = self.parameter.meaning_and_range();
        for (word, meaning) in &self.parameter.choices {
            let _ = write!(text, " `{word}`: {}", if meaning.is_empty() { "." } else { meaning });
        }
        text
    }
}

/// All parameters of all parts.
pub fn settings(composition: &Composition) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (seam, part) in composition.all_parts() {
        let known = composition::algorithm(seam, &part.algorithm).map_or(&[][..], |known| &known.parameters);
        for parameter in known {
            let value = part.parameters.get(&parameter.name).map_or(String::new(), parameter::plain);
            settings.push(Setting { seam, parameter: parameter.clone(), value });
        }
    }
    settings
}
