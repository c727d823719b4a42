//! The references for goodput: `sack` on the in-order path, and the oracles, which know every loss, on the path with its
//! reordering.

use reknit_sim::Scenario;
use reknit_variants::algorithms::CongestionControl;

use crate::setup::Setup;
use crate::{Error, NamedVariant, named_variant};

/// The variant whose goodput on the in-order path is the reference.
const IN_ORDER: &str = "sack";

/// The purpose of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunKind {
    /// The goodput of `sack` without reordering.
    InOrder,
    /// The goodput of the oracle with this growth.
    Oracle(GrowthModel),
    /// The variant with this index.
    Variant(usize),
}

/// How a window grows without losses; the oracles differ in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrowthModel {
    /// As CUBIC's.
    Cubic,
    /// As Reno's.
    Reno,
    /// By the model of BBR version 1.
    Bbr1,
    /// By the model of BBR version 3.
    Bbr,
}

impl GrowthModel {
    /// The growths for which there is an oracle.
    pub(crate) const ALL: [GrowthModel; 4] =
        [GrowthModel::Cubic, GrowthModel::Reno, GrowthModel::Bbr1, GrowthModel::Bbr];

    /// The growth of a variant. An unknown growth is compared with CUBIC's.
    pub(crate) fn of(variant: &NamedVariant) -> GrowthModel {
        if variant.transport.is_some() {
            return GrowthModel::Cubic;
        }
        match variant.composition.congestion_control {
            CongestionControl::Reno(_) => GrowthModel::Reno,
            CongestionControl::Bbr1(_) => GrowthModel::Bbr1,
            CongestionControl::Bbr(_) => GrowthModel::Bbr,
            _ => GrowthModel::Cubic,
        }
    }

    /// The growth of a kernel such as `kernel:cubic+timestamps=0`. Linux has version 1 of BBR.
    pub fn of_kernel(name: &str) -> GrowthModel {
        match name.split('+').next() {
            Some("kernel:reno") => GrowthModel::Reno,
            Some("kernel:bbr") => GrowthModel::Bbr1,
            _ => GrowthModel::Cubic,
        }
    }

    /// The name of the oracle with this growth.
    fn oracle(self) -> &'static str {
        match self {
            GrowthModel::Cubic => "oracle",
            GrowthModel::Reno => "oracle-reno",
            GrowthModel::Bbr1 => "oracle-bbr1",
            GrowthModel::Bbr => "oracle-bbr",
        }
    }
}

/// The variants that are references.
#[derive(Clone, Debug)]
pub(crate) struct References {
    in_order: NamedVariant,
    /// In the order of [`GrowthModel::ALL`].
    oracles: [NamedVariant; 4],
}

impl References {
    pub(crate) fn find() -> Result<References, Error> {
        let find = |name: &str| named_variant::find(name, &[]).map_err(|error| Error::Failed(error.to_string()));
        let [cubic, reno, bbr1, bbr] = GrowthModel::ALL.map(|growth| find(growth.oracle()));
        Ok(References { in_order: find(IN_ORDER)?, oracles: [cubic?, reno?, bbr1?, bbr?] })
    }

    /// The oracle with this growth.
    pub(crate) fn oracle(&self, growth: GrowthModel) -> &NamedVariant {
        &self.oracles[growth as usize]
    }

    /// The variant that runs for a purpose.
    pub(crate) fn variant<'a>(&'a self, purpose: RunKind, variants: &'a [NamedVariant]) -> &'a NamedVariant {
        match purpose {
            RunKind::InOrder => &self.in_order,
            RunKind::Oracle(growth) => self.oracle(growth),
            RunKind::Variant(i) => &variants[i],
        }
    }

    /// The simulation for a purpose.
    pub(crate) fn scenario(&self, purpose: RunKind, variants: &[NamedVariant], setup: &Setup, seed: u64) -> Scenario {
        let variant = self.variant(purpose, variants);
        if purpose == RunKind::InOrder {
            setup.in_order().scenario(variant, seed)
        } else {
            setup.scenario(variant, seed)
        }
    }
}

/// `goodput` as a share of the goodput of a reference; none if that is unknown or zero.
pub fn share(goodput: f64, reference: Option<f64>) -> Option<f64> {
    Some(goodput / reference.filter(|reference| *reference > 0.0)?)
}
