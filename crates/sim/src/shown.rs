//! What the plug-ins of connections show.

use std::collections::BTreeMap;

use reknit_tcp::seams::ShownName;

/// The numbers that plug-ins showed when their connections ended: a mean over connections for each.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PluginMetrics {
    sums: BTreeMap<ShownName, (f64, u32)>,
}

impl PluginMetrics {
    /// A connection has ended with this value.
    pub(crate) fn note(&mut self, name: ShownName, value: f64) {
        self.add_sum(name, value, 1);
    }

    /// Adds those of other connections.
    pub fn add(&mut self, other: &PluginMetrics) {
        for (name, (sum, count)) in &other.sums {
            self.add_sum(*name, *sum, *count);
        }
    }

    /// The mean of each number over the connections that showed it.
    pub fn means(&self) -> impl Iterator<Item = (ShownName, f64)> {
        self.sums.iter().map(|(name, (sum, count))| (*name, sum / f64::from(*count)))
    }

    fn add_sum(&mut self, name: ShownName, sum: f64, count: u32) {
        let known = self.sums.entry(name).or_default();
        known.0 += sum;
        known.1 += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_over_the_connections_that_showed_the_number() {
        let name = |name| ShownName { seam: "dup_thresh", name };
        let (mut all, mut other) = (PluginMetrics::default(), PluginMetrics::default());
        all.note(name("b"), 1.0);
        other.note(name("b"), 2.0);
        other.note(name("b"), 6.0);
        other.note(name("a"), -4.0);
        all.add(&other);
        assert_eq!(all.means().collect::<Vec<_>>(), [(name("a"), -4.0), (name("b"), 3.0)]);
    }
}
