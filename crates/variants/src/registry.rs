//! The list of all variants, by family, and the lookup by name.

use std::fmt;
use std::sync::LazyLock;

use crate::variant::Variant;
use crate::{base, bbr, limit, linux, receiver, reknit, threshold, time, undo, wait};

/// What a variant does about reordering. Each family has a folder, whose `mod.rs` lists its variants.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name where variants are selected: the name of its folder.
    pub key: &'static str,
    /// A one-line description for lists.
    pub title: &'static str,
    /// Its variants.
    pub variants: &'static [Variant],
}

/// All families, in the order of lists.
pub static FAMILIES: [Family; 10] = [
    Family { key: "base", title: "do nothing about reordering", variants: base::VARIANTS },
    Family { key: "undo", title: "detect a spurious reduction and undo it", variants: undo::VARIANTS },
    Family { key: "threshold", title: "adapt the threshold", variants: threshold::VARIANTS },
    Family { key: "wait", title: "wait before retransmitting", variants: wait::VARIANTS },
    Family {
        key: "time",
        title: "detect losses by time instead of by counting duplicate ACKs",
        variants: time::VARIANTS,
    },
    Family {
        key: "bbr",
        title: "control the rate by a model of the path instead of by losses",
        variants: bbr::VARIANTS,
    },
    Family { key: "linux", title: "behave as an operating system does", variants: linux::VARIANTS },
    Family { key: "receiver", title: "hide reordering at the receiver", variants: receiver::VARIANTS },
    Family { key: "reknit", title: "learn how late segments arrive, and wait that long", variants: reknit::VARIANTS },
    Family { key: "limit", title: "a reference, in simulation only", variants: limit::VARIANTS },
];

/// All variants, in the order in which they are listed.
pub static VARIANTS: LazyLock<Vec<Variant>> =
    LazyLock::new(|| FAMILIES.iter().flat_map(|family| family.variants).copied().collect());

impl Family {
    fn contains(&self, variant: &Variant) -> bool {
        self.variants.iter().any(|other| other.name == variant.name)
    }
}

impl Variant {
    /// What it does about reordering.
    ///
    /// # Panics
    /// Never: only this crate defines variants, and all are in a family.
    pub fn family(&self) -> &'static Family {
        FAMILIES.iter().find(|family| family.contains(self)).expect("every variant is in a family")
    }

    /// True if only a simulator can run it, because the sender needs to know which packets the network lost.
    pub fn is_simulated_only(&self) -> bool {
        limit::VARIANTS.iter().any(|variant| variant.name == self.name)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title)
    }
}

/// An unknown variant name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown variant `{name}`{}", hint(.name, &mut std::iter::empty()))]
pub struct UnknownVariant {
    /// The name that was requested.
    pub name: String,
}

/// What to say about a variant that is not known: names that are similar to `name`, also of the user's `own` variants, and
/// where all names are.
pub fn hint(name: &str, own: &mut dyn Iterator<Item = &str>) -> String {
    let near = reknit_config::did_you_mean(name, VARIANTS.iter().map(|variant| variant.name).chain(own));
    format!("{near}{} `reknit variants` lists all", if near.is_empty() { ";" } else { "" })
}

/// The variant called `name`; case is ignored.
///
/// # Errors
/// If there is none; the message suggests similar names.
pub fn find(name: &str) -> Result<&'static Variant, UnknownVariant> {
    let matches = |known: &str| known.eq_ignore_ascii_case(name.trim());
    VARIANTS
        .iter()
        .find(|v| matches(v.name) || v.aliases.iter().any(|alias| matches(alias)))
        .ok_or_else(|| UnknownVariant { name: name.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lower_case() {
        let names: Vec<_> = VARIANTS.iter().flat_map(|v| std::iter::once(&v.name).chain(v.aliases)).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name} twice");
            assert_eq!(name.to_lowercase(), **name);
        }
    }

    #[test]
    fn variants_are_found_by_alias_and_in_any_case() {
        assert_eq!(find("RACK-TLP").unwrap().name, "rack");
        let error = find("tahoe").unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `tahoe`; `reknit variants` lists all"), "{error}");
    }
}
