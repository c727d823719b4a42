//! Compositions of parts of several variants.

use std::sync::LazyLock;

use reknit_tcp::seams::Seam;
use reknit_variants::{Composition, VARIANTS, Variant, requirements};
use toml::Value;

/// A base, and the variants whose parts replace the base's in some seams.
#[derive(Clone, Debug)]
pub struct MixedComposition {
    /// The base: its number in [`live`].
    pub base: usize,
    /// Seams by their number, each with the number of the variant that gives its part.
    pub parts: Vec<(usize, usize)>,
}

/// The variants that need no simulator that tells them what was lost.
pub fn live() -> &'static [&'static Variant] {
    static LIVE: LazyLock<Vec<&'static Variant>> =
        LazyLock::new(|| VARIANTS.iter().filter(|variant| !variant.is_simulated_only()).collect());
    &LIVE
}

impl MixedComposition {
    /// The base with one part after another replaced, as far as the rules allow.
    pub fn composition(&self) -> Composition {
        let variants = live();
        let mut composition = (variants[self.base].compose)();
        for &(seam, donor) in &self.parts {
            let before = composition.clone();
            let donor = (variants[donor].compose)();
            take(&mut composition, Seam::ALL[seam], &donor);
            if !requirements::check(&composition).errors.is_empty() {
                composition = before;
            }
        }
        composition.settle();
        composition
    }
}

/// Replaces `seam` by that of `donor`; if the seam is a list, adds to it.
fn take(composition: &mut Composition, seam: Seam, donor: &Composition) {
    let tables = |composition: &Composition| -> Vec<Value> {
        composition.parts(seam).iter().map(|part| Value::Table(part.table())).collect()
    };
    let (own, mut given) = (tables(composition), tables(donor));
    let value = if seam.takes_many() { Value::Array([own, given].concat()) } else { given.remove(0) };
    composition.fill(seam, value).expect("the algorithms of registered variants can be named in files");
}
