//! The bytes of the incoming stream that the application has not read.

use std::collections::VecDeque;

use crate::pool::Pool;
use crate::receiver::Delivery;

/// Bytes of a page.
const PAGE: usize = 4096;
/// The most empty pages that are kept for later use: as many as a driver fills with one batch, 2 MiB.
const SPARE_PAGES: usize = 512;

pub(super) type Page = Box<[u8; PAGE]>;

/// A sliding window of the incoming stream: bytes are inserted anywhere in it and removed at its start.
///
/// A page is allocated when the first of its bytes arrives, so a byte far ahead of the others costs a page and not the
/// buffer.
#[derive(Debug, Default)]
pub(super) struct ReceiveBuffer {
    /// The page of `first`, and those after it.
    pages: VecDeque<Option<Page>>,
    spare: Vec<Page>,
    /// Pages that have data.
    filled: usize,
    /// Stream position of the next byte to be removed.
    first: u64,
}

impl ReceiveBuffer {
    /// Keeps the part of all `payloads` together that is accepted.
    pub(super) fn put_parts<'a>(&mut self, delivery: Delivery, payloads: impl Iterator<Item = &'a [u8]>) {
        let Delivery { mut position, mut skip, mut len } = delivery;
        for payload in payloads {
            let skipped = skip.min(payload.len());
            let taken = len.min(payload.len() - skipped);
            self.put(position, &payload[skipped..skipped + taken]);
            position += taken as u64;
            skip -= skipped;
            len -= taken;
        }
    }

    fn put(&mut self, mut position: u64, mut bytes: &[u8]) {
        let front = self.first / PAGE as u64;
        while !bytes.is_empty() {
            let index = (position / PAGE as u64 - front) as usize;
            let at = position as usize % PAGE;
            let (now, later) = bytes.split_at(bytes.len().min(PAGE - at));
            if index >= self.pages.len() {
                self.pages.resize_with(index + 1, || None);
            }
            let page = self.pages[index].get_or_insert_with(|| {
                self.filled += 1;
                self.spare.pop().unwrap_or_else(|| Box::new([0; PAGE]))
            });
            page[at..at + now.len()].copy_from_slice(now);
            position += now.len() as u64;
            bytes = later;
        }
    }

    /// Removes as many bytes as `into` has. They have arrived.
    pub(super) fn take(&mut self, mut into: &mut [u8]) {
        while !into.is_empty() {
            let at = self.first as usize % PAGE;
            let (now, later) = into.split_at_mut(into.len().min(PAGE - at));
            if let Some(Some(page)) = self.pages.front() {
                now.copy_from_slice(&page[at..at + now.len()]);
            }
            self.first += now.len() as u64;
            into = later;
            if self.first.is_multiple_of(PAGE as u64) {
                let empty = self.pages.pop_front().flatten();
                self.filled -= usize::from(empty.is_some());
                self.spare.extend(empty.filter(|_| self.spare.len() < SPARE_PAGES));
            }
        }
    }

    /// Copies the next bytes. They have arrived.
    pub(super) fn copy(&self, mut into: &mut [u8]) {
        let mut at = self.first as usize % PAGE;
        for page in &self.pages {
            let (now, later) = into.split_at_mut(into.len().min(PAGE - at));
            if let Some(page) = page {
                now.copy_from_slice(&page[at..at + now.len()]);
            }
            into = later;
            at = 0;
        }
    }

    /// Borrows from the owner's buffers what it lacks.
    pub(super) fn borrow_buffers(&mut self, index: &mut Pool<VecDeque<Option<Page>>>, empty: &mut Vec<Page>) {
        if self.pages.capacity() == 0 {
            index.lend(&mut self.pages);
            self.count_pages();
        }
        if self.spare.capacity() == 0 {
            self.spare = std::mem::take(empty);
        }
    }

    /// Gives its empty pages to `empty`.
    pub(super) fn return_pages(&mut self, empty: &mut Vec<Page>) {
        let mut pages = std::mem::take(&mut self.spare);
        if empty.is_empty() {
            *empty = pages;
        } else {
            pages.truncate(SPARE_PAGES.saturating_sub(empty.len()));
            empty.append(&mut pages);
        }
    }

    /// Everything was read: returns the list of its pages. One page may be in use for the next bytes.
    pub(super) fn return_index(&mut self, index: &mut Pool<VecDeque<Option<Page>>>) {
        self.pages.truncate(1);
        index.reclaim(&mut self.pages);
        self.count_pages();
    }

    pub(super) fn holds_memory(&self) -> bool {
        self.pages.capacity() + self.spare.capacity() > 0
    }

    /// Releases its memory. `is_drained` if everything was read.
    pub(super) fn shrink(&mut self, is_drained: bool) {
        self.spare = Vec::new();
        if is_drained {
            self.pages = VecDeque::new();
            self.filled = 0;
        }
    }

    /// A list with at most one page was given away, or borrowed.
    fn count_pages(&mut self) {
        self.filled = self.pages.iter().flatten().count();
    }

    /// Bytes of the pages that have data, and of their list.
    pub(super) fn memory(&self) -> usize {
        self.filled * PAGE + self.pages.capacity() * size_of::<Option<Page>>()
    }

    /// Brings its fields into the cache.
    pub(super) fn prefetch(&self) {
        std::hint::black_box(&(self.pages.len(), self.first));
    }

    /// Bytes allocated for the stream.
    #[cfg(test)]
    fn allocated(&self) -> usize {
        assert_eq!(self.filled, self.pages.iter().flatten().count());
        (self.pages.iter().flatten().count() + self.spare.len()) * PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(position: u64) -> u8 {
        (position * 7 + position / 251) as u8
    }

    fn bytes(positions: std::ops::Range<u64>) -> Vec<u8> {
        positions.map(byte).collect()
    }

    #[test]
    fn a_byte_far_ahead_costs_one_page() {
        let mut buffer = ReceiveBuffer::default();
        buffer.put(64 << 20, &[1]);
        assert_eq!(buffer.allocated(), PAGE);
    }

    #[test]
    fn memory_follows_the_data_and_is_used_again() {
        let mut buffer = ReceiveBuffer::default();
        let mut into = vec![0; 10_000];
        for n in 0..100 {
            buffer.put(n * 10_000, &bytes(n * 10_000..(n + 1) * 10_000));
            buffer.take(&mut into);
            assert!(buffer.allocated() <= 4 * PAGE, "{}", buffer.allocated());
        }
        buffer.put(1_000_000, &bytes(1_000_000..4_000_000));
        let mut all = vec![0; 3_000_000];
        buffer.take(&mut all);
        assert!(buffer.allocated() <= (SPARE_PAGES + 1) * PAGE, "{}", buffer.allocated());
    }

    #[test]
    fn of_joined_payloads_the_accepted_part_is_kept() {
        let all = bytes(0..100);
        for (skip, len) in [(0, 100), (5, 90), (35, 60), (40, 1), (99, 1), (100, 0)] {
            let mut buffer = ReceiveBuffer { first: skip as u64, ..ReceiveBuffer::default() };
            let parts = [&all[..30], &all[30..40], &[], &all[40..]];
            buffer.put_parts(Delivery { position: skip as u64, skip, len }, parts.into_iter());
            let mut read = vec![0; len];
            buffer.take(&mut read);
            assert_eq!(read, all[skip..skip + len], "{skip}, {len}");
        }
    }

    #[test]
    fn pieces_in_any_order_are_read_in_order() {
        let mut buffer = ReceiveBuffer::default();
        for n in (0..50).rev().step_by(2).chain((0..50).step_by(2)) {
            buffer.put(n * 777, &bytes(n * 777..(n + 1) * 777));
        }
        let mut read = Vec::new();
        for len in [1, 4095, 4096, 4097, 10_000, 16_561] {
            let (mut peeked, mut into) = (vec![0; len], vec![0; len]);
            buffer.copy(&mut peeked);
            buffer.take(&mut into);
            assert!(peeked == into);
            read.extend(into);
        }
        assert_eq!(read, bytes(0..38_850));
    }
}
