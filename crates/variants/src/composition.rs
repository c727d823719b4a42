//! What is done with a composition: reading and changing its parts, and the options that follow from them.

use std::sync::LazyLock;

use reknit_config::KeyError;
use reknit_tcp::Config;
use reknit_tcp::seams::Seam;
use toml::Value;

use crate::algorithm::SeamAlgorithm;
pub use crate::algorithms::Composition;
use crate::base::newreno;
use crate::parameter::Description;
use crate::requirement::{Need, Requirement};
use crate::slot::Part;

impl Composition {
    /// The algorithms that fill `seam`, as users see them.
    pub fn parts(&self, seam: Seam) -> Vec<Part> {
        self.slot(seam).parts()
    }

    /// The algorithms of all seams, as users see them.
    pub fn all_parts(&self) -> impl Iterator<Item = (Seam, Part)> {
        Seam::ALL.into_iter().flat_map(|seam| self.parts(seam).into_iter().map(move |part| (seam, part)))
    }

    /// Replaces what fills `seam` by what `value` describes, as in a variant file.
    ///
    /// # Errors
    /// If `value` is invalid; the error names the key and what is allowed.
    pub fn fill(&mut self, seam: Seam, value: Value) -> Result<(), KeyError> {
        self.slot_mut(seam).fill(seam, value)
    }

    /// The options of the connection with the changes that this variant requires.
    #[must_use]
    pub fn configure(&self, mut config: Config) -> Config {
        if let Some(set) = self.options {
            set(&mut config);
        }
        config.sack &= self.sack;
        config.timestamps = self.timestamps.unwrap_or(config.timestamps);
        config.dsack &= config.sack;
        config
    }

    /// Chooses again which plug-ins replace those that need SACK; call it after algorithms were changed. A detector that works
    /// without SACK stays: it may have the only timer. If it is replaced, so is an estimator that leaves the timer to it.
    pub fn settle(&mut self) {
        let needs_sack =
            |requirements: &[Requirement]| requirements.iter().any(|requirement| requirement.needs(Need::Sack));
        let depends_on = |requirement: &Requirement| matches!(requirement, Requirement::Only(Seam::LossDetector, _));
        let has_timer = !self.rto_estimator.requirements().iter().any(depends_on);
        self.without_sack =
            match (needs_sack(self.loss_detector.requirements()), needs_sack(self.fast_recovery.requirements())) {
                (true, _) if !has_timer => Some(newreno::with_its_timer),
                (true, _) => self.without_sack.or(Some(newreno::without_sack)),
                (false, true) => Some(newreno::recovery_without_sack),
                (false, false) => None,
            };
    }
}

/// The algorithms that may fill `seam`.
pub fn algorithms(seam: Seam) -> &'static [Description] {
    static ALGORITHMS: LazyLock<[Vec<Description>; Seam::ALL.len()]> = LazyLock::new(|| {
        let composition = Composition::default();
        Seam::ALL.map(|seam| composition.slot(seam).descriptions())
    });
    &ALGORITHMS[seam as usize]
}

/// What users read about the algorithm with this name; none if it is not in the list of `seam`.
pub fn algorithm(seam: Seam, name: &str) -> Option<&'static Description> {
    algorithms(seam).iter().find(|known| known.name == name)
}
