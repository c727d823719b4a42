//! A pool of buffers of one kind that many connections share.

use std::collections::VecDeque;

/// The most buffers of a kind that wait for the next connection.
const MOST: usize = 32;
/// The largest buffer that is taken back, in bytes. A connection keeps larger ones until it has been idle for a while.
const LARGEST: usize = 16 << 10;

/// Buffers of one kind.
#[derive(Debug)]
pub(crate) struct Pool<T>(Vec<T>);

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool(Vec::new())
    }
}

pub(crate) trait Storage: Default {
    /// Bytes that it has allocated.
    fn size(&self) -> usize;
}

impl<T> Storage for Vec<T> {
    fn size(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl<T> Storage for VecDeque<T> {
    fn size(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl<T: Storage> Pool<T> {
    /// Lends a buffer to `to`, unless it has one.
    pub(crate) fn lend(&mut self, to: &mut T) {
        if to.size() == 0
            && let Some(buffer) = self.0.pop()
        {
            *to = buffer;
        }
    }

    /// Takes back a buffer that is not needed any more.
    pub(crate) fn reclaim(&mut self, from: &mut T) {
        let size = from.size();
        if size == 0 || size > LARGEST {
            return;
        }
        if self.0.len() < MOST {
            self.0.push(std::mem::take(from));
        } else {
            *from = T::default();
        }
    }
}
