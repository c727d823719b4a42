//! Compositions of parts of several variants.

use std::sync::LazyLock;

use reknit_variants::seam::Seam;
use reknit_variants::{Composition, VARIANTS, Variant, rules};

/// A base, and the variants whose parts replace the base's in some seams.
#[derive(Clone, Debug)]
pub struct Recipe {
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

impl Recipe {
    /// The base with one part after another replaced, as far as the rules allow.
    pub fn composition(&self) -> Composition {
        let variants = live();
        let mut composition = (variants[self.base].compose)();
        for &(seam, donor) in &self.parts {
            let before = composition.clone();
            let donor = (variants[donor].compose)();
            take(&mut composition, Seam::ALL[seam], donor);
            if !rules::check(&composition).errors.is_empty() {
                composition = before;
            }
        }
        composition.settle();
        composition
    }
}

macro_rules! take {
    (
        sender { $($field:ident: $count:ident $seam:ident, $decides:literal;)+ }
        receiver { $($rcv_field:ident: $rcv_count:ident $rcv_seam:ident, $rcv_decides:literal;)+ }
    ) => {
        /// Replaces `seam` by that of `donor`; if the seam is a list, adds to it.
        fn take(composition: &mut Composition, seam: Seam, donor: Composition) {
            match seam {
                $(Seam::$seam => take!(@$count composition.$field, donor.$field),)+
                $(Seam::$rcv_seam => take!(@$rcv_count composition.$rcv_field, donor.$rcv_field),)+
            }
        }
    };
    (@one $slot:expr, $donor:expr) => { $slot = $donor };
    (@many $slot:expr, $donor:expr) => { $slot.extend($donor) };
}

reknit_tcp::seams!(take);
