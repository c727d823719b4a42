//! The trait that all plug-ins have in common.

use std::fmt::{self, Debug};

use dyn_clone::DynClone;
use reknit_units::Instant;

use crate::facts::{Context, RecoveryEvent};
use crate::seams::Memory;

/// A plug-in of any seam. It derives `Clone` and `Debug`, which must show all of its state.
pub trait Plugin: Debug + DynClone + Send {
    /// A change in the sender's recovery. Resets state that belongs to a single episode. Not called for plug-ins of a
    /// receiver.
    fn on_recovery_event(&mut self, _cx: &Context<'_>, _event: RecoveryEvent) {}

    /// Bytes that it has allocated on the heap.
    fn heap_size(&self) -> usize {
        0
    }

    /// Calls `show` for each of its variables that users may want to see, with a name such as `fa_ratio`. The name of a
    /// number with a unit ends in the unit (`window_ms`). Results prefix it with the seam: `dup_thresh.fa_ratio`.
    fn show(&self, _show: &mut dyn FnMut(&'static str, f64)) {}

    /// Keeps what the next connection to the same peer may start with. Only `rr-tcp` needs it: in `rr-share`, a connection starts
    /// with the histogram of the one before.
    fn remember(&self, _memory: &mut Memory) {}

    /// Starts with what earlier connections to the same peer have kept. Called before the first segment. Only `rr-tcp` needs it:
    /// in `rr-share`, a connection starts with the histogram of the one before.
    fn recall(&mut self, _now: Instant, _memory: &Memory) {}
}

/// The name of a number that a plug-in shows. As text: `dup_thresh.fa_ratio`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ShownName {
    /// The seam of the plug-in.
    pub seam: &'static str,
    /// The plug-in's name for the number.
    pub name: &'static str,
}

impl fmt::Display for ShownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seam, self.name)
    }
}

/// Plug-ins of different seams, and what is done with all of them.
pub(crate) trait PluginSet {
    /// Calls `visit` with each plug-in and the name of its seam.
    fn each(&self, visit: &mut dyn FnMut(&'static str, &dyn Plugin));

    /// Calls `visit` with each plug-in.
    fn each_mut(&mut self, visit: &mut dyn FnMut(&mut dyn Plugin));

    /// Bytes that the plug-ins occupy.
    fn state_size(&self) -> usize {
        let mut size = 0;
        self.each(&mut |_, plugin| size += size_of_val(plugin) + plugin.heap_size());
        size
    }

    /// Notifies every plug-in of a change in the sender's recovery.
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.each_mut(&mut |plugin| plugin.on_recovery_event(cx, event));
    }

    /// Calls `show` for each number that a plug-in shows, except infinities and NaN.
    fn show(&self, show: &mut dyn FnMut(ShownName, f64)) {
        self.each(&mut |seam, plugin| {
            plugin.show(&mut |name, value| {
                if value.is_finite() {
                    show(ShownName { seam, name }, value);
                }
            });
        });
    }

    /// Lets every plug-in keep something for the next connection.
    fn remember(&self, memory: &mut Memory) {
        self.each(&mut |_, plugin| plugin.remember(memory));
    }

    /// Lets every plug-in start with what earlier connections have kept.
    fn recall(&mut self, now: Instant, memory: &Memory) {
        self.each_mut(&mut |plugin| plugin.recall(now, memory));
    }
}
