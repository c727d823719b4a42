//! The format of Wireshark (draft-ietf-opsawg-pcapng).

use std::io::{self, Read};

use reknit_units::grouped;

use super::buffer::Buffer;
use super::{MAX_BYTES, Next, Order, Record};

/// The first bytes of every file.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
/// The obsolete packet block.
const PACKET: u32 = 2;
const SIMPLE: u32 = 3;
const ENHANCED: u32 = 6;
/// Bytes before and after the body of a block.
const HEAD: usize = 8;
const TAIL: usize = 4;
/// The most interfaces of a section.
const MAX_INTERFACES: usize = 1 << 16;

const OPTION_END: u16 = 0;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u16,
    snaplen: u32,
    /// Ticks per second.
    resolution: u64,
    offset: i64,
}

impl Interface {
    /// Nanoseconds since 1970.
    fn nanos(&self, ticks: u64) -> u64 {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.resolution);
        let offset = i128::from(self.offset) * 1_000_000_000;
        u64::try_from(i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(offset).max(0)).unwrap_or(u64::MAX)
    }
}

#[derive(Debug, Default)]
pub(super) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
}

impl Pcapng {
    pub(super) fn next<R: Read>(&mut self, buffer: &mut Buffer<R>) -> io::Result<Next> {
        if !buffer.fill(HEAD + TAIL)? {
            let rest = buffer.bytes().len();
            return Ok(if rest == 0 { Next::End } else { Next::Damaged(format!("cut off after {rest} bytes")) });
        }
        if buffer.bytes().starts_with(&MAGIC) {
            let bytes = buffer.bytes();
            self.order = match (Order::Little.u32(bytes, HEAD), Order::Big.u32(bytes, HEAD)) {
                (BYTE_ORDER, _) => Order::Little,
                (_, BYTE_ORDER) => Order::Big,
                _ => return Ok(Next::Damaged("a section without a byte order".to_owned())),
            };
            self.interfaces.clear();
        }
        let kind = self.order.u32(buffer.bytes(), 0);
        let len = self.order.u32(buffer.bytes(), 4) as usize;
        if len < HEAD + TAIL || !len.is_multiple_of(4) {
            return Ok(Next::Damaged(format!("a block with the impossible length {}", grouped(len as u64))));
        }
        let has_packets = matches!(kind, INTERFACE | PACKET | SIMPLE | ENHANCED);
        if !has_packets {
            let whole = buffer.skip(len)?;
            return Ok(if whole { Next::Other } else { Next::Damaged(format!("a block of {len} bytes is cut off")) });
        }
        if len > MAX_BYTES {
            return Ok(Next::Damaged(format!("a block of {len} bytes, more than the {MAX_BYTES} allowed")));
        }
        if !buffer.fill(len)? {
            return Ok(Next::Damaged(format!("cut off after {} of {len} bytes", buffer.bytes().len())));
        }
        let body = &buffer.bytes()[HEAD..len - TAIL];
        let next = match kind {
            INTERFACE => self.interface(body),
            SIMPLE => self.simple(body, len),
            _ => self.packet(body, kind, len),
        };
        if matches!(next, Next::Other) {
            buffer.consume(len);
        }
        Ok(next)
    }

    fn interface(&mut self, body: &[u8]) -> Next {
        if body.len() < 8 {
            return Next::Damaged("an interface without a link type".to_owned());
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return Next::Damaged(format!("more than the {MAX_INTERFACES} interfaces allowed"));
        }
        let order = self.order;
        let mut interface =
            Interface { link: order.u16(body, 0), snaplen: order.u32(body, 4), resolution: 1_000_000, offset: 0 };
        let mut options = &body[8..];
        while options.len() >= 4 {
            let (code, len) = (order.u16(options, 0), usize::from(order.u16(options, 2)));
            let Some(value) = options.get(4..4 + len) else { break };
            match (code, value) {
                (OPTION_END, _) => break,
                (OPTION_TSRESOL, [exponent]) => interface.resolution = resolution(*exponent),
                (OPTION_TSOFFSET, value) if len == 8 => {
                    let halves = [order.u32(value, 0), order.u32(value, 4)].map(u64::from);
                    let [low, high] = if order == Order::Big { [halves[1], halves[0]] } else { halves };
                    interface.offset = (high << 32 | low).cast_signed();
                }
                _ => {}
            }
            options = options.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(interface);
        Next::Other
    }

    /// An enhanced packet block, or an obsolete packet block, whose interface number has 16 bits.
    fn packet(&self, body: &[u8], kind: u32, len: usize) -> Next {
        const FIELDS: usize = 20;
        if body.len() < FIELDS {
            return Next::Damaged("a packet without its fields".to_owned());
        }
        let [high, low, captured, original] = [4, 8, 12, 16].map(|at| self.order.u32(body, at));
        let number = if kind == ENHANCED { self.order.u32(body, 0) } else { self.order.u16(body, 0).into() };
        let Some(interface) = self.interfaces.get(number as usize) else {
            return Next::Damaged(format!("interface {number} of {}", self.interfaces.len()));
        };
        let captured = captured as usize;
        if captured > body.len() - FIELDS {
            return Next::Damaged(format!("its length is {captured} bytes, but its block has {}", body.len() - FIELDS));
        }
        let at = interface.nanos(u64::from(high) << 32 | u64::from(low));
        let from = HEAD + FIELDS;
        let original_len = (original as usize).max(captured);
        Next::Frame(Record {
            at: Some(at),
            interface: number,
            link: interface.link,
            from,
            to: from + captured,
            original_len,
            len,
        })
    }

    /// A simple packet block, which has no time.
    fn simple(&self, body: &[u8], len: usize) -> Next {
        const FIELDS: usize = 4;
        let (Some(interface), true) = (self.interfaces.first(), body.len() >= FIELDS) else {
            return Next::Damaged("a packet without an interface".to_owned());
        };
        let original = self.order.u32(body, 0) as usize;
        let limit = if interface.snaplen == 0 { usize::MAX } else { interface.snaplen as usize };
        let captured = original.min(limit).min(body.len() - FIELDS);
        let from = HEAD + FIELDS;
        Next::Frame(Record {
            at: None,
            interface: 0,
            link: interface.link,
            from,
            to: from + captured,
            original_len: original,
            len,
        })
    }
}

/// Ticks per second: a power of ten, or with the highest bit of two. Powers that no clock has are cut.
fn resolution(exponent: u8) -> u64 {
    let power = u32::from(exponent & 0x7f);
    if exponent & 0x80 == 0 { 10_u64.pow(power.min(19)) } else { 1_u64 << power.min(63) }
}
