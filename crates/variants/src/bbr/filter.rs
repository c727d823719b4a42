//! A windowed maximum over a clock that counts steps: rounds or probing cycles.

/// The maximum over the last `N` steps, this one included.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowedMax<T, const N: usize> {
    /// The maximum of each step, at its number modulo `N`.
    slots: [T; N],
    step: u64,
}

impl<T: Copy + Ord + Default, const N: usize> WindowedMax<T, N> {
    pub(super) fn new() -> WindowedMax<T, N> {
        WindowedMax { slots: [T::default(); N], step: 0 }
    }

    /// The clock stands at `step`: what is older than the window is forgotten.
    pub(super) fn advance(&mut self, step: u64) {
        for forgotten in (self.step + 1..=step).take(N) {
            self.slots[forgotten as usize % N] = T::default();
        }
        self.step = self.step.max(step);
    }

    /// Takes in `value` at the step at which the clock stands.
    pub(super) fn update(&mut self, value: T) {
        let slot = &mut self.slots[self.step as usize % N];
        *slot = value.max(*slot);
    }

    /// The maximum of the step at which the clock stands.
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
