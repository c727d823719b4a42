//! Which bytes of a stream have arrived.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of positions: all up to some position, and ranges above it.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    up_to: u64,
    /// The end of each range by its start. They neither overlap nor touch.
    above: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds a range. False if all of it was already there.
    pub(super) fn insert(&mut self, range: &Range<u64>) -> bool {
        let (mut start, mut end) = (range.start.max(self.up_to), range.end);
        if end <= start || self.above.range(..=start).next_back().is_some_and(|(_, known)| *known >= end) {
            return false;
        }
        while let Some((known, known_end)) = self.above.range(..=end).next_back().map(|(s, e)| (*s, *e)) {
            if known_end < start {
                break;
            }
            self.above.remove(&known);
            (start, end) = (start.min(known), end.max(known_end));
        }
        if start == self.up_to {
            self.up_to = end;
        } else {
            self.above.insert(start, end);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set(ranges in prop::collection::vec((0u64..40, 0u64..8), 0..40)) {
            let (mut found, mut expected) = (Ranges::default(), BTreeSet::new());
            for (start, len) in ranges {
                let mut is_new = false;
                (start..start + len).for_each(|position| is_new |= expected.insert(position));
                prop_assert_eq!(found.insert(&(start..start + len)), is_new);
            }
            let in_order = (0..=48).find(|position| !expected.contains(position)).unwrap();
            prop_assert_eq!(found.up_to, in_order);
            prop_assert!(found.above.keys().all(|start| *start > in_order && !expected.contains(&(start - 1))));
        }
    }
}
