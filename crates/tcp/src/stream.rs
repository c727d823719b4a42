//! A connection with its data: a send buffer and a receive buffer around a [`Connection`].

use std::collections::VecDeque;
use std::sync::Arc;

use reknit_units::{Bytes, Instant};

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
        Stream::new(Connection::connect(now, config.clone(), plugins, identity), config, send_buffer)
    }

    /// Opens passively.
    pub fn listen(
        now: Instant,
        config: &Arc<Config>,
        plugins: Plugins,
        identity: Identity,
        send_buffer: Bytes,
    ) -> Stream {
        Stream::new(Connection::listen(now, config.clone(), plugins, identity), config, send_buffer)
    }

    fn new(connection: Connection, config: &Config, send_buffer: Bytes) -> Stream {
        Stream {
            connection,
            send: SendBuffer { bytes: VecDeque::new(), first: 0, limit: send_buffer.0 as usize },
            receive: ReceiveBuffer::new(config.receive_buffer_size().0 as usize),
        }
    }

    /// The connection itself, for its state and counters.
    pub fn connection(&self) -> &Connection {
        &self.connection
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
        self.send.limit.saturating_sub(self.send.bytes.len())
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

    /// The application has no more data to write.
    pub fn close(&mut self) {
        self.connection.close();
    }

    /// Aborts the connection; the peer gets a RST.
    pub fn abort(&mut self, now: Instant) {
        self.connection.abort(now);
    }

    /// Processes a segment with its payload. Bytes beyond `segment.len` are ignored; a payload that is shorter is
    /// refused.
    pub fn on_segment(&mut self, now: Instant, segment: &Segment, payload: &[u8]) {
        if payload.len() < usize::from(segment.len) {
            return;
        }
        if let Some(delivery) = self.connection.on_segment(now, segment) {
            self.receive.put(delivery.position, &payload[delivery.skip..delivery.skip + delivery.len]);
        }
        self.send.release(self.connection.first_needed());
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
            self.send.release(self.connection.first_needed());
        }
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

/// A sliding window of the incoming stream: bytes are inserted anywhere in it and removed at its start.
#[derive(Debug)]
struct ReceiveBuffer {
    bytes: Vec<u8>,
    capacity: usize,
    /// Stream position of the next byte to be removed.
    first: u64,
}

impl ReceiveBuffer {
    fn new(capacity: usize) -> ReceiveBuffer {
        // Grows with use: most connections never fill their window.
        ReceiveBuffer { bytes: Vec::new(), capacity: capacity.next_power_of_two(), first: 0 }
    }

    fn put(&mut self, position: u64, bytes: &[u8]) {
        let end = (position + bytes.len() as u64).saturating_sub(self.first) as usize;
        self.grow(end);
        let mask = self.bytes.len() - 1;
        let at = position as usize & mask;
        let in_front = bytes.len().min(self.bytes.len() - at);
        self.bytes[at..at + in_front].copy_from_slice(&bytes[..in_front]);
        self.bytes[..bytes.len() - in_front].copy_from_slice(&bytes[in_front..]);
    }

    fn take(&mut self, into: &mut [u8]) {
        if into.is_empty() {
            return;
        }
        let mask = self.bytes.len() - 1;
        let at = self.first as usize & mask;
        let in_front = into.len().min(self.bytes.len() - at);
        let (front, back) = into.split_at_mut(in_front);
        front.copy_from_slice(&self.bytes[at..at + in_front]);
        back.copy_from_slice(&self.bytes[..back.len()]);
        self.first += into.len() as u64;
    }

    /// Makes room for `needed` bytes from `first`; the ring's length stays a power of two.
    fn grow(&mut self, needed: usize) {
        let needed = needed.max(4096).next_power_of_two().min(self.capacity);
        if needed <= self.bytes.len() {
            return;
        }
        let mut larger = vec![0; needed];
        let old = self.bytes.len();
        for i in 0..old {
            let position = self.first as usize + i;
            larger[position & (needed - 1)] = self.bytes[position & (old - 1)];
        }
        self.bytes = larger;
    }
}
