//! Whether a replay reproduces a capture, by the goodput: called by `replay` before variants are compared, and by `remedies` before
//! a change is advised.

/// How exact a replay must be for what it is used for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Tolerance {
    /// The allowed goodput, as a share of the captured one.
    least: f64,
    most: f64,
    /// Whether the whole range of the goodput must be allowed, or a part of it.
    whole: bool,
}

/// Variants are compared by their goodput on the replayed path, so that of the captured sender must be known.
pub(crate) const TO_COMPARE: Tolerance = Tolerance { least: 0.85, most: 1.15, whole: true };
/// A change is advised if it is worth it compared with the capture and with the replay, so the replay need not be as exact.
pub(crate) const TO_ADVISE: Tolerance = Tolerance { least: 1.0 / 1.5, most: 1.5, whole: false };

/// What the range of a replay's goodput says about the captured one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Agreement {
    Agrees,
    Differs,
    /// A part of the range is allowed.
    Undecided,
}

impl Tolerance {
    /// Compares the lowest and the highest goodput of a replay with the captured one.
    pub(crate) fn agreement(&self, (low, high): (f64, f64), captured: f64) -> Agreement {
        let (least, most) = (captured * self.least, captured * self.most);
        if low >= least && high <= most {
            Agreement::Agrees
        } else if high < least || low > most {
            Agreement::Differs
        } else {
            Agreement::Undecided
        }
    }

    /// True if a replay with this range of the goodput reproduces the capture.
    pub(crate) fn reproduces(&self, range: (f64, f64), captured: f64) -> bool {
        match self.agreement(range, captured) {
            Agreement::Agrees => true,
            Agreement::Undecided => !self.whole,
            Agreement::Differs => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_needs_the_whole_range_and_advice_a_part_of_it() {
        for (range, agreement, to_compare, to_advise) in [
            ((9.9, 10.1), Agreement::Agrees, true, true),
            ((8.0, 10.0), Agreement::Undecided, false, true),
            ((14.0, 14.9), Agreement::Differs, false, true),
            ((6.0, 6.6), Agreement::Differs, false, false),
            ((15.1, 20.0), Agreement::Differs, false, false),
        ] {
            assert_eq!(TO_COMPARE.agreement(range, 10.0), agreement, "{range:?}");
            assert_eq!(TO_COMPARE.reproduces(range, 10.0), to_compare, "{range:?}");
            assert_eq!(TO_ADVISE.reproduces(range, 10.0), to_advise, "{range:?}");
        }
    }
}
