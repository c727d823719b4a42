//! Buffers that many streams use in turn, so that idle ones have none, and busy ones have some that are in the cache.

use std::collections::VecDeque;

use crate::scoreboard::{Record, SegId};
use crate::segment::Segment;
use crate::sender::Outgoing;
use crate::stream::Page;

/// The most buffers of a kind that wait for the next stream.
const MOST: usize = 32;
/// The largest buffer that is taken back, in bytes. A stream keeps larger ones until it has been idle for a while.
const LARGEST: usize = 16 << 10;

/// The buffers of an owner of many streams. It lends them to a stream before a call ([`crate::Stream::lend`]), and takes back
/// afterwards what is empty ([`crate::Stream::give_back`]).
#[derive(Debug, Default)]
pub struct Buffers {
    pub(crate) segments: Pool<VecDeque<Segment>>,
    pub(crate) records: Pool<VecDeque<Record>>,
    pub(crate) ids: Pool<Vec<SegId>>,
    pub(crate) outgoing: Pool<Vec<Outgoing>>,
    pub(crate) bytes: Pool<VecDeque<u8>>,
    pub(crate) pages: Pool<VecDeque<Option<Page>>>,
    /// Empty pages: all of them are lent together.
    pub(crate) empty_pages: Vec<Page>,
}

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
    pub(crate) fn take_back(&mut self, from: &mut T) {
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
