//! A connection with its data: a send buffer and a receive buffer around a [`Connection`].

mod buffers;
mod receive_buffer;
mod send_buffer;

use std::sync::Arc;

use reknit_units::{Bytes, Instant};

pub use self::buffers::Buffers;
use self::receive_buffer::ReceiveBuffer;
use self::send_buffer::SendBuffer;
use crate::config::Config;
use crate::connection::{Connection, Identity, Output};
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
        Stream { connection, send: SendBuffer::new(send_buffer), receive: ReceiveBuffer::default() }
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
    pub fn prefetch(&self) {
        self.connection.prefetch();
        self.send.prefetch();
        self.receive.prefetch();
    }

    /// The same for the algorithms, after [`Stream::prefetch`].
    pub fn prefetch_plugins(&self) {
        self.connection.prefetch_plugins();
    }

    /// Changes how much may be written ahead of the peer's acknowledgments. What was written already stays.
    pub fn set_send_buffer(&mut self, limit: Bytes) {
        self.send.set_limit(limit);
    }

    /// Lends the stream buffers for the next call, if it has none. It works without them, but then allocates.
    pub fn lend(&mut self, buffers: &mut Buffers) {
        self.connection.borrow_buffers(&mut buffers.connection);
        self.send.borrow_buffer(&mut buffers.bytes);
        self.receive.borrow_buffers(&mut buffers.pages, &mut buffers.empty_pages);
    }

    /// Gives back the pages that are empty, for the next stream that gets a segment.
    pub fn give_back_pages(&mut self, buffers: &mut Buffers) {
        self.receive.return_pages(&mut buffers.empty_pages);
    }

    /// Gives back the buffers that are empty.
    pub fn give_back(&mut self, buffers: &mut Buffers) {
        self.connection.return_buffers(&mut buffers.connection);
        self.give_back_pages(buffers);
        self.send.return_buffer(&mut buffers.bytes);
        if self.is_drained() {
            self.receive.return_index(&mut buffers.pages);
        }
    }

    /// True if nothing has arrived that was not read.
    fn is_drained(&self) -> bool {
        self.connection.readable() == Bytes::ZERO && !self.connection.has_gaps()
    }

    /// True if [`Stream::shrink`] may release memory, at once or later.
    pub fn holds_memory(&self) -> bool {
        self.send.holds_memory() || self.receive.holds_memory() || self.connection.holds_memory()
    }

    /// Bytes of its buffers, and of what else grows with the data: not what it takes when it is idle. Takes constant time.
    pub fn memory(&self) -> usize {
        self.send.memory() + self.receive.memory() + self.connection.memory()
    }

    /// Releases memory that only a busy connection needs.
    pub fn shrink(&mut self, now: Instant) {
        self.connection.shrink(now);
        self.send.shrink();
        self.receive.shrink(self.is_drained());
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
        self.send.push(&bytes[..taken]);
        if taken > 0 {
            self.connection.write(Bytes(taken as u64));
        }
        taken
    }

    /// Bytes that [`Stream::write`] would accept.
    pub fn writable(&self) -> usize {
        // Not what is stored: that also depends on how often the owner polls.
        self.send.limit().saturating_sub(self.connection.unacknowledged().0 as usize)
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

    /// Aborts the connection; the peer gets a RST. What was written and not acknowledged is not sent any more, and released.
    pub fn abort(&mut self, now: Instant) {
        self.connection.abort(now);
        self.send.clear();
    }

    /// Processes a segment with its payload. Bytes beyond `segment.len` are ignored; a payload that is shorter is
    /// refused.
    pub fn on_segment(&mut self, now: Instant, segment: &Segment, payload: &[u8]) {
        self.on_joined(now, segment, std::iter::once(payload));
    }

    /// As [`Stream::on_segment`], for several segments that were coalesced into one, with their payloads in order.
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
