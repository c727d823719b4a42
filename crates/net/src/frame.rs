//! Packets in the format of the device. With offload, each has a virtio header (virtio 1.2 §5.1.6): several segments can then be
//! one packet (TSO), and checksums are computed only where they are needed. The driver collects packets from the stack after
//! each batch, and writes them.

use reknit_stack::{Stack, Transmit};
use reknit_units::Instant;
use reknit_wire::{encode_headers, encode_headers_for_offload};

use crate::run::Run;

/// Bytes of the virtio header.
pub(crate) const VIRTIO: usize = 10;
/// Room for the headers before the payload.
const HEADROOM: usize = VIRTIO + 40 + 60;

pub(crate) const NEEDS_CHECKSUM: u8 = 1;
pub(crate) const DATA_IS_VALID: u8 = 2;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
/// Several datagrams to the same destination, one after the other.
pub(crate) const GSO_UDP: u8 = 5;

/// A packet for the device.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// The packet, after some unused bytes.
    bytes: Vec<u8>,
    begins: usize,
}

impl Frame {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.begins..]
    }

    /// Empties it except for the space for headers; the payload is appended to the result.
    fn clear(&mut self) -> &mut Vec<u8> {
        self.bytes.resize(HEADROOM, 0);
        self.begins = HEADROOM;
        &mut self.bytes
    }

    fn put_before(&mut self, headers: &[u8]) {
        let end = self.begins;
        self.begins -= headers.len();
        self.bytes[self.begins..end].copy_from_slice(headers);
    }
}

/// Packets that wait to be written, and their buffers.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    slots: Vec<Frame>,
    used: usize,
    headers: Vec<u8>,
    /// Datagrams and ICMP messages.
    others: Vec<Frame>,
    others_used: usize,
    packet: Vec<u8>,
    /// The run that is not in a frame yet, because further segments may continue it. Its payload is in the last frame.
    open: Option<Run>,
}

impl Frames {
    /// The packets to write.
    pub(crate) fn ready(&self) -> impl Iterator<Item = &Frame> {
        self.others[..self.others_used].iter().chain(&self.slots[..self.used])
    }

    /// Collects what the stack wants to send: up to `most` packets of segments, and as many others. True if there may be more.
    pub(crate) fn fill(&mut self, stack: &mut Stack, now: Instant, offload: bool, most: usize) -> bool {
        let more_others = self.fill_others(stack, offload, most);
        let more_segments = self.fill_segments(stack, now, offload, most);
        more_others || more_segments
    }

    fn fill_others(&mut self, stack: &mut Stack, offload: bool, most: usize) -> bool {
        self.others_used = 0;
        while self.others_used < most {
            if !stack.poll_other(&mut self.packet) {
                return false;
            }
            if self.others_used == self.others.len() {
                self.others.push(Frame::default());
            }
            let frame = &mut self.others[self.others_used];
            frame.clear().extend_from_slice(&self.packet);
            if offload {
                frame.put_before(&[0; VIRTIO]); // nothing is left to the device
            }
            self.others_used += 1;
        }
        true
    }

    fn fill_segments(&mut self, stack: &mut Stack, now: Instant, offload: bool, most: usize) -> bool {
        if self.open.is_some() {
            self.slots.swap(0, self.used);
        }
        self.used = 0;
        while self.used < most {
            let at = self.used;
            let taken = if offload { self.next_joined(stack, now) } else { self.next_plain(stack, now) };
            if !taken {
                return false;
            }
            self.used = at + 1;
        }
        true
    }

    fn frame(&mut self, at: usize) -> &mut Frame {
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, Frame::default);
        }
        &mut self.slots[at]
    }

    fn next_plain(&mut self, stack: &mut Stack, now: Instant) -> bool {
        let at = self.used;
        let bytes = self.frame(at).clear();
        let Some(Transmit { endpoints, hop_limit, segment }) = stack.poll(now, bytes) else { return false };
        encode_headers(endpoints, hop_limit, &segment, &self.slots[at].bytes[HEADROOM..], &mut self.headers);
        self.slots[at].put_before(&self.headers);
        true
    }

    fn next_joined(&mut self, stack: &mut Stack, now: Instant) -> bool {
        let at = self.used;
        self.frame(at + 1);
        if self.open.is_none() {
            let Some(first) = stack.poll(now, self.slots[at].clear()) else { return false };
            self.open = Some(Run::new(first));
        }
        while let Some(mut open) = self.open.take() {
            let bytes = &mut self.slots[at].bytes;
            let len = bytes.len();
            match stack.poll(now, bytes) {
                Some(next) if open.join(&next.endpoints, next.hop_limit, &next.segment) => self.open = Some(open),
                next => {
                    // The next segment begins another frame.
                    let (these, later) = self.slots.split_at_mut(at + 1);
                    let (this, other) = (&mut these[at], &mut later[0]);
                    other.clear().extend_from_slice(&this.bytes[len..]);
                    this.bytes.truncate(len);
                    self.open = next.map(Run::new);
                    finish(this, &open, &mut self.headers);
                    return true;
                }
            }
        }
        false
    }
}

/// Writes the headers before the payload.
fn finish(frame: &mut Frame, open: &Run, headers: &mut Vec<u8>) {
    let Transmit { endpoints, hop_limit, segment } = &open.first;
    let ip_len = encode_headers_for_offload(*endpoints, *hop_limit, segment, open.len, headers);
    let mut virtio = [0; VIRTIO];
    virtio[0] = NEEDS_CHECKSUM;
    if open.len > usize::from(segment.len) {
        virtio[1] = if endpoints.source.is_ipv4() { GSO_TCP_V4 } else { GSO_TCP_V6 };
        virtio[4..6].copy_from_slice(&segment.len.to_ne_bytes());
    }
    virtio[2..4].copy_from_slice(&(headers.len() as u16).to_ne_bytes());
    virtio[6..8].copy_from_slice(&(ip_len as u16).to_ne_bytes());
    virtio[8..10].copy_from_slice(&16u16.to_ne_bytes()); // the checksum's place in the TCP header
    frame.put_before(headers);
    frame.put_before(&virtio);
}
