//! A list with a maximum length, in place.

/// At most `N` values, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct List<T, const N: usize> {
    /// Those from `len` on are not used.
    values: [T; N],
    len: u8,
}

impl<T: Copy, const N: usize> List<T, N> {
    /// An empty list, filled up with `unused`.
    pub(crate) const fn new(unused: T) -> List<T, N> {
        assert!(N <= u8::MAX as usize);
        List { values: [unused; N], len: 0 }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &self.values[..usize::from(self.len)]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.values[..usize::from(self.len)]
    }

    pub(crate) fn is_full(&self) -> bool {
        usize::from(self.len) == N
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Removes the value at `i`, which must be in the list.
    pub(crate) fn remove(&mut self, i: usize) -> T {
        let values = self.as_mut_slice();
        let removed = values[i];
        values.copy_within(i + 1.., i);
        self.len -= 1;
        removed
    }

    /// Appends a value. Returns the oldest if it is dropped to make room.
    pub(crate) fn push(&mut self, value: T) -> Option<T> {
        let dropped = self.is_full().then(|| self.remove(0));
        self.values[usize::from(self.len)] = value;
        self.len += 1;
        dropped
    }

    /// Removes the values for which `stays` is false. Calls it once for each, in order.
    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&T) -> bool) {
        let mut kept = 0;
        for i in 0..usize::from(self.len) {
            let value = self.values[i];
            if stays(&value) {
                self.values[kept] = value;
                kept += 1;
            }
        }
        self.len = kept as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let mut list = List::<u32, 3>::new(0);
        assert_eq!([1, 2, 3].map(|n| list.push(n)), [None; 3]);
        assert_eq!(list.push(4), Some(1));
        assert_eq!(list.remove(1), 3);
        assert_eq!(list.as_slice(), [2, 4]);
        list.retain(|n| *n > 2);
        assert_eq!(list.as_slice(), [4]);
    }
}
