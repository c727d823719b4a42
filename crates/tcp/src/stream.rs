//! A connection with its data: a send buffer and a receive buffer around a [`Connection`].

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

use reknit_units::{Bytes, Instant};

use crate::buffers::Buffers;
use crate::config::Config;
use crate::connection::{Connection, Identity, Output};
use crate::receiver::Delivery;
use crate::seams::Plugins;
use crate::segment::Segment;

/// A [`Connection`] that keeps the payload, for applications that read and write data.
#[derive(Debug)]
pub struct Stream {
    connection: Connection,
    send: SendBuffer,
    receive: ReceiveBuffer,
}

impl Stream {
    /// Opens actively. `send_buffer` limits how much may be written ahead of the peer's acknowledgments.
    pub fn connect(
        now: Instant,
        config: &Arc<Config>,
        plugins: Plugins,
        identity: Identity,
        send_buffer: Bytes,
    ) -> Stream {
        Stream::new(Connection::connect(now, config.clone(), plugins, identity), send_buffer)
    }

    /// Opens passively.
    pub fn listen(
        now: Instant,
        config: &Arc<Config>,
        plugins: Plugins,
        identity: Identity,
        send_buffer: Bytes,
    ) -> Stream {
        Stream::new(Connection::listen(now, config.clone(), plugins, identity), send_buffer)
    }

    /// Opens passively from a SYN cookie (see [`Connection::resume`]).
    pub fn resume(
        now: Instant,
        config: &Arc<Config>,
        plugins: Plugins,
        identity: Identity,
        syn: &Segment,
        send_buffer: Bytes,
    ) -> Stream {
        Stream::new(Connection::resume(now, config.clone(), plugins, identity, syn), send_buffer)
    }

    fn new(connection: Connection, send_buffer: Bytes) -> Stream {
        Stream {
            connection,
            send: SendBuffer { bytes: VecDeque::new(), first: 0, limit: send_buffer.0 as usize },
            receive: ReceiveBuffer::default(),
        }
    }

    /// The connection itself, for its state and counters.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The connection, to change its options. Bytes must go through the stream.
    pub fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Reads the memory that almost every call needs, so that it is in the cache then. For owners of many connections, which
    /// know which ones they will call next.
    pub fn read_ahead(&self) {
        self.connection.read_ahead();
        black_box(&(self.send.limit, self.receive.pages.len(), self.receive.first));
    }

    /// The same for the algorithms, after [`Stream::read_ahead`].
    pub fn read_algorithms_ahead(&self) {
        self.connection.read_algorithms_ahead();
    }

    /// Changes how much may be written ahead of the peer's acknowledgments. What was written already stays.
    pub fn set_send_buffer(&mut self, limit: Bytes) {
        self.send.limit = limit.0 as usize;
    }

    /// Lends the stream buffers for the next call, if it has none. It works without them, but then allocates.
    pub fn lend(&mut self, buffers: &mut Buffers) {
        self.connection.lend(buffers);
        buffers.bytes.lend(&mut self.send.bytes);
        buffers.pages.lend(&mut self.receive.pages);
        if self.receive.spare.capacity() == 0 {
            self.receive.spare = std::mem::take(&mut buffers.empty_pages);
        }
    }

    /// Gives back the pages that are empty, for the next stream that gets a segment.
    pub fn give_back_pages(&mut self, buffers: &mut Buffers) {
        let mut pages = std::mem::take(&mut self.receive.spare);
        if buffers.empty_pages.is_empty() {
            buffers.empty_pages = pages;
        } else {
            pages.truncate(SPARE_PAGES.saturating_sub(buffers.empty_pages.len()));
            buffers.empty_pages.append(&mut pages);
        }
    }

    /// Gives back the buffers that are empty.
    pub fn give_back(&mut self, buffers: &mut Buffers) {
        self.connection.give_back(buffers);
        self.give_back_pages(buffers);
        if self.send.bytes.is_empty() {
            buffers.bytes.take_back(&mut self.send.bytes);
        }
        if self.is_drained() {
            self.receive.pages.truncate(1);
            buffers.pages.take_back(&mut self.receive.pages);
        }
    }

    /// True if nothing has arrived that was not read.
    fn is_drained(&self) -> bool {
        self.connection.readable() == Bytes::ZERO && !self.connection.has_gaps()
    }

    /// True if [`Stream::shrink`] may release memory, at once or later.
    pub fn holds_memory(&self) -> bool {
        let own = self.send.bytes.capacity() + self.receive.pages.capacity() + self.receive.spare.capacity();
        own > 0 || self.connection.holds_memory()
    }

    /// Releases memory that only a busy connection needs.
    pub fn shrink(&mut self, now: Instant) {
        self.connection.shrink(now);
        if self.send.bytes.is_empty() {
            self.send.bytes = VecDeque::new();
        }
        self.receive.spare = Vec::new();
        if self.is_drained() {
            self.receive.pages = VecDeque::new();
        }
    }

    /// Releases what the peer has acknowledged, unless a queued segment may still carry it.
    fn release_acknowledged(&mut self) {
        if !self.connection.has_output() {
            self.send.release(self.connection.acknowledged());
        }
    }

    /// Writes as much of `bytes` as fits the buffer; returns how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        if self.connection.is_write_closed() {
            return 0;
        }
        let taken = bytes.len().min(self.writable());
        self.send.bytes.extend(&bytes[..taken]);
        if taken > 0 {
            self.connection.write(Bytes(taken as u64));
        }
        taken
    }

    /// Bytes that [`Stream::write`] would accept.
    pub fn writable(&self) -> usize {
        // Not what is stored: that also depends on how often the owner polls.
        self.send.limit.saturating_sub(self.connection.unacknowledged().0 as usize)
    }

    /// Reads what has arrived in order into `into`; returns how many bytes.
    pub fn read(&mut self, now: Instant, into: &mut [u8]) -> usize {
        let n = into.len().min(self.connection.readable().0 as usize);
        self.receive.take(&mut into[..n]);
        if n > 0 {
            self.connection.read(now, Bytes(n as u64));
        }
        n
    }

    /// As [`Stream::read`], but what is read can be read again.
    pub fn peek(&self, into: &mut [u8]) -> usize {
        let n = into.len().min(self.connection.readable().0 as usize);
        self.receive.copy(&mut into[..n]);
        n
    }

    /// The application has no more data to write.
    pub fn close(&mut self) {
        self.connection.close();
    }

    /// As [`Connection::set_secret`].
    pub fn set_secret(&mut self, secret: u64) {
        self.connection.set_secret(secret);
    }

    /// Aborts the connection; the peer gets a RST.
    pub fn abort(&mut self, now: Instant) {
        self.connection.abort(now);
    }

    /// Processes a segment with its payload. Bytes beyond `segment.len` are ignored; a payload that is shorter is
    /// refused.
    pub fn on_segment(&mut self, now: Instant, segment: &Segment, payload: &[u8]) {
        self.on_joined(now, segment, std::iter::once(payload));
    }

    /// As [`Stream::on_segment`], for several segments that have been joined to one, with their payloads in order.
    pub fn on_joined<'a>(&mut self, now: Instant, segment: &Segment, payloads: impl Iterator<Item = &'a [u8]> + Clone) {
        if payloads.clone().map(<[u8]>::len).sum::<usize>() < usize::from(segment.len) {
            return;
        }
        if let Some(delivery) = self.connection.on_segment(now, segment) {
            self.receive.put_parts(delivery, payloads);
        }
        self.release_acknowledged();
    }

    /// Fires the timers that are due.
    pub fn on_timer(&mut self, now: Instant) {
        self.connection.on_timer(now);
    }

    /// The next output. The payload of a segment is appended to `payload`.
    pub fn poll(&mut self, now: Instant, payload: &mut Vec<u8>) -> Output {
        let output = self.connection.poll(now);
        if let Output::Send(segment) = &output
            && segment.len > 0
            && let Some(position) = self.connection.position_sent(segment.seq)
        {
            self.send.copy(position, usize::from(segment.len), payload);
        }
        self.release_acknowledged();
        output
    }
}

/// Bytes that were written and are not acknowledged.
#[derive(Debug)]
struct SendBuffer {
    bytes: VecDeque<u8>,
    /// Stream position of the first of them.
    first: u64,
    limit: usize,
}

impl SendBuffer {
    fn copy(&self, position: u64, len: usize, into: &mut Vec<u8>) {
        let from = position.saturating_sub(self.first) as usize;
        let (front, back) = self.bytes.as_slices();
        let in_front = front.len().saturating_sub(from).min(len);
        if in_front > 0 {
            into.extend_from_slice(&front[from..from + in_front]);
        }
        let from = (from + in_front).saturating_sub(front.len());
        let rest = (len - in_front).min(back.len().saturating_sub(from));
        into.extend_from_slice(&back[from..from + rest]);
    }

    fn release(&mut self, first_needed: u64) {
        let n = (first_needed.saturating_sub(self.first) as usize).min(self.bytes.len());
        self.bytes.drain(..n);
        self.first += n as u64;
    }
}

/// Bytes of a page.
const PAGE: usize = 4096;
/// The most empty pages that are kept for later use: as many as a driver fills with one batch, 2 MiB.
const SPARE_PAGES: usize = 512;

pub(crate) type Page = Box<[u8; PAGE]>;

/// A sliding window of the incoming stream: bytes are inserted anywhere in it and removed at its start.
///
/// A page is allocated when the first of its bytes arrives, so a byte far ahead of the others costs a page and not the
/// buffer.
#[derive(Debug, Default)]
struct ReceiveBuffer {
    /// The page of `first`, and those after it.
    pages: VecDeque<Option<Page>>,
    spare: Vec<Page>,
    /// Stream position of the next byte to be removed.
    first: u64,
}

impl ReceiveBuffer {
    /// Keeps the part of all `payloads` together that is accepted.
    fn put_parts<'a>(&mut self, delivery: Delivery, payloads: impl Iterator<Item = &'a [u8]>) {
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
            let page = self.pages[index].get_or_insert_with(|| self.spare.pop().unwrap_or_else(|| Box::new([0; PAGE])));
            page[at..at + now.len()].copy_from_slice(now);
            position += now.len() as u64;
            bytes = later;
        }
    }

    /// Removes as many bytes as `into` has. They have arrived.
    fn take(&mut self, mut into: &mut [u8]) {
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
                self.spare.extend(empty.filter(|_| self.spare.len() < SPARE_PAGES));
            }
        }
    }

    /// Copies the next bytes. They have arrived.
    fn copy(&self, mut into: &mut [u8]) {
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

    /// Bytes allocated for the stream.
    #[cfg(test)]
    fn allocated(&self) -> usize {
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
