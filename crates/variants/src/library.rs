//! The parts that a variant file may name: those of the registered variants. An algorithm is known as soon as a variant
//! uses it; there is no separate list.

use crate::composition::Composition;
use crate::part::Kind;
use crate::registry::VARIANTS;
use crate::seam::Seam;
use crate::slot::Slot;

/// The parts of all registered variants.
#[derive(Debug)]
pub struct Library(Vec<Composition>);

impl Library {
    /// Collects the parts of all registered variants.
    pub fn new() -> Library {
        Library(VARIANTS.iter().map(|variant| (variant.compose)()).collect())
    }

    /// What fills `seam` in each variant.
    pub(crate) fn slots(&self, seam: Seam) -> Vec<&dyn Slot> {
        self.0.iter().map(|composition| composition.slot(seam)).collect()
    }

    /// Each kind of part that fills `seam` somewhere, once.
    pub fn kinds(&self, seam: Seam) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = Vec::new();
        for face in self.slots(seam).into_iter().flat_map(Slot::faces) {
            if kinds.iter().all(|kind| kind.type_name != face.kind.type_name) {
                kinds.push(face.kind);
            }
        }
        kinds
    }
}

impl Default for Library {
    fn default() -> Library {
        Library::new()
    }
}
