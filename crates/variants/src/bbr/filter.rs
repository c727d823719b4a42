//! A windowed maximum. The window is measured in steps: rounds or probing cycles.

/// The maximum over the last `N` steps, including the current one.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowedMax<T, const N: usize> {
    /// The maximum of each step, at the number of the step modulo `N`.
    slots: [T; N],
    step: u64,
}

impl<T: Copy + Ord + Default, const N: usize> WindowedMax<T, N> {
    pub(super) fn new() -> WindowedMax<T, N> {
        WindowedMax { slots: [T::default(); N], step: 0 }
    }

    /// Makes `step` the current step; values from before the window are dropped.
    pub(super) fn advance(&mut self, step: u64) {
        for forgotten in (self.step + 1..=step).take(N) {
            self.slots[forgotten as usize % N] = T::default();
        }
        self.step = self.step.max(step);
    }

    /// Adds a value to the current step.
    pub(super) fn update(&mut self, value: T) {
        let slot = &mut self.slots[self.step as usize % N];
        *slot = value.max(*slot);
    }

    /// The maximum of the current step.
    pub(super) fn current(&self) -> T {
        self.slots[self.step as usize % N]
    }

    pub(super) fn get(&self) -> T {
        self.slots.iter().copied().max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_forgotten_after_its_window() {
        let mut max = WindowedMax::<u64, 3>::new();
        max.update(5);
        max.advance(1);
        max.update(3);
        max.advance(2);
        assert_eq!(max.get(), 5);
        max.advance(3);
        assert_eq!(max.get(), 3);
        max.advance(30);
        assert_eq!(max.get(), 0);
    }
}
