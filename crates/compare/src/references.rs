//! The references for goodput: `sack` on the in-order path, and the oracles, which show what is possible on the path with its
//! reordering.

use reknit_sim::Scenario;
use reknit_variants::seam::Seam;

use crate::setup::Setup;
use crate::{Error, NamedVariant, named_variant};

/// The variant whose goodput on the in-order path is the reference.
const IN_ORDER: &str = "sack";
/// Reno's growth, by its name in variant files.
const RENO: &str = "reno";

/// The purpose of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// The goodput of `sack` without reordering.
    InOrder,
    /// The goodput of the oracle with this growth.
    Possible(Growth),
    /// The variant with this index.
    Variant(usize),
}

/// How a window grows without losses; the oracles differ in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Growth {
    Cubic,
    Reno,
}

impl Growth {
    /// The growths for which there is an oracle.
    pub(crate) const ALL: [Growth; 2] = [Growth::Cubic, Growth::Reno];

    /// The growth of a variant. Any other growth is compared with the faster oracle.
    pub(crate) fn of(variant: &NamedVariant) -> Growth {
        let faces = variant.composition.faces(Seam::CongestionControl);
        if faces.iter().any(|face| face.algorithm == RENO) { Growth::Reno } else { Growth::Cubic }
    }

    /// The growth of a kernel such as `kernel:cubic`.
    pub(crate) fn of_kernel(name: &str) -> Growth {
        if name.starts_with("kernel:reno") { Growth::Reno } else { Growth::Cubic }
    }

    /// The name of the oracle with this growth.
    fn oracle(self) -> &'static str {
        match self {
            Growth::Cubic => "oracle",
            Growth::Reno => "oracle-reno",
        }
    }
}

/// The variants that are references.
#[derive(Clone, Debug)]
pub(crate) struct References {
    in_order: NamedVariant,
    cubic: NamedVariant,
    reno: NamedVariant,
}

impl References {
    pub(crate) fn find() -> Result<References, Error> {
        let find = |name: &str| named_variant::find(name, &[]).map_err(|error| Error::Failed(error.to_string()));
        Ok(References {
            in_order: find(IN_ORDER)?,
            cubic: find(Growth::Cubic.oracle())?,
            reno: find(Growth::Reno.oracle())?,
        })
    }

    /// The oracle with this growth.
    pub(crate) fn oracle(&self, growth: Growth) -> &NamedVariant {
        match growth {
            Growth::Cubic => &self.cubic,
            Growth::Reno => &self.reno,
        }
    }

    /// The variant that runs for a purpose.
    pub(crate) fn variant<'a>(&'a self, purpose: Purpose, variants: &'a [NamedVariant]) -> &'a NamedVariant {
        match purpose {
            Purpose::InOrder => &self.in_order,
            Purpose::Possible(growth) => self.oracle(growth),
            Purpose::Variant(i) => &variants[i],
        }
    }

    /// The simulation for a purpose.
    pub(crate) fn scenario(&self, purpose: Purpose, variants: &[NamedVariant], setup: &Setup, seed: u64) -> Scenario {
        let variant = self.variant(purpose, variants);
        if purpose == Purpose::InOrder {
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
