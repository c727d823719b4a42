//! What all QUIC transports share: the size of their headers, the messages of the handshake, and what packets carry.
//!
//! Packets are not encrypted, but have the 16 bytes of a tag. So they have the sizes and numbers that
//! they would have with TLS, runs are deterministic and fast, and the data that a packet carries can be read from it.

use std::ops::Range;

/// Bytes of the IPv4 and UDP headers.
pub const HEADERS: u64 = 28;
/// Bytes of the tag that a cipher appends.
pub const TAG: usize = 16;
/// Bytes of connection IDs, as quinn and noq choose them.
pub const CID: usize = 8;

/// The messages of a TLS 1.3 handshake with a small certificate, which here have no content except the transport parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Message {
    /// From the client: key share, parameters.
    ClientHello,
    /// From the server: key share.
    ServerHello,
    /// From the server: parameters, certificate, signature, `Finished`.
    ServerFlight,
    /// From the client.
    ClientFinished,
}

impl Message {
    /// Bytes of the message.
    const fn len(self) -> usize {
        match self {
            Message::ClientHello => 320,
            Message::ServerHello => 90,
            Message::ServerFlight => 900,
            Message::ClientFinished => 36,
        }
    }

    const fn has_parameters(self) -> bool {
        matches!(self, Message::ClientHello | Message::ServerFlight)
    }
}

/// Writes the tag of a packet, which ends in room for it. It has the number of key updates and of the packet: as with a real cipher, a
/// packet is discarded if it arrives so late that its keys have been discarded, or that its number is decoded wrongly.
pub fn seal(updates: u64, number: u64, packet: &mut [u8]) {
    if let Some(at) = packet.len().checked_sub(TAG) {
        packet[at..].copy_from_slice(&tag(updates, number));
    }
}

/// The length of a payload without its tag; none if the tag is not that of these keys and of this packet number.
pub fn open(updates: u64, number: u64, payload: &[u8]) -> Option<usize> {
    let len = payload.len().checked_sub(TAG)?;
    (payload[len..] == tag(updates, number)).then_some(len)
}

fn tag(updates: u64, number: u64) -> [u8; TAG] {
    (u128::from(updates) << 64 | u128::from(number)).to_be_bytes()
}

/// What an end does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Write(Message),
    Read(Message),
    /// The keys of the next packet number space.
    Upgrade,
}

/// What each end does, in order.
const CLIENT: [Step; 6] = [
    Step::Write(Message::ClientHello),
    Step::Read(Message::ServerHello),
    Step::Upgrade,
    Step::Read(Message::ServerFlight),
    Step::Write(Message::ClientFinished),
    Step::Upgrade,
];
const SERVER: [Step; 6] = [
    Step::Read(Message::ClientHello),
    Step::Write(Message::ServerHello),
    Step::Upgrade,
    Step::Write(Message::ServerFlight),
    Step::Upgrade,
    Step::Read(Message::ClientFinished),
];

/// The state of a handshake at one end.
#[derive(Debug)]
pub struct Handshake {
    /// What remains to be done.
    steps: &'static [Step],
    parameters: Vec<u8>,
    /// The other end's parameters.
    peer: Option<Vec<u8>>,
    received: Vec<u8>,
}

impl Handshake {
    /// The handshake of an end with these transport parameters.
    pub fn new(is_client: bool, parameters: Vec<u8>) -> Handshake {
        let steps = if is_client { &CLIENT[..] } else { &SERVER[..] };
        Handshake { steps, parameters, peer: None, received: Vec::new() }
    }

    /// False if it is complete.
    pub fn is_going_on(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The other end's transport parameters.
    pub fn peer(&self) -> Option<&[u8]> {
        self.peer.as_deref()
    }

    /// Reads what has been received.
    pub fn read(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        while let [Step::Read(message), rest @ ..] = self.steps
            && self.received.len() >= message.len()
        {
            let content: Vec<u8> = self.received.drain(..message.len()).collect();
            if let Some((len, content)) = content.split_first_chunk().filter(|_| message.has_parameters()) {
                let len = usize::from(u16::from_be_bytes(*len)).min(content.len());
                self.peer = Some(content[..len].to_vec());
            }
            self.steps = rest;
        }
    }

    /// Appends what is to be sent to `buffer`. True if the next keys are to be used after it.
    pub fn write(&mut self, buffer: &mut Vec<u8>) -> bool {
        while let [step, rest @ ..] = self.steps {
            match step {
                Step::Read(_) => break,
                Step::Upgrade => {
                    self.steps = rest;
                    return true;
                }
                Step::Write(message) => {
                    let content = if message.has_parameters() { &self.parameters[..] } else { &[] };
                    let end = buffer.len() + message.len();
                    buffer.extend_from_slice(&(content.len() as u16).to_be_bytes());
                    buffer.extend_from_slice(content);
                    buffer.resize(end, 0);
                    self.steps = rest;
                }
            }
        }
        false
    }
}

/// The bytes of streams that a datagram carries.
pub fn stream_data(datagram: &[u8]) -> Vec<Range<u64>> {
    let mut reader = Reader(datagram);
    let mut found = Vec::new();
    while let Some(first) = reader.peek() {
        if first & 0x80 == 0 {
            let number_len = usize::from(first & 3) + 1;
            let payload = datagram.len().saturating_sub(TAG);
            let consumed = datagram.len() - reader.0.len() + 1 + CID + number_len;
            frames(datagram.get(consumed..payload).unwrap_or_default(), &mut found);
            break;
        }
        if reader.skip_long().is_none() {
            break;
        }
    }
    found
}

/// Adds the data of all STREAM frames (RFC 9000 §19.8).
fn frames(payload: &[u8], found: &mut Vec<Range<u64>>) {
    let mut reader = Reader(payload);
    while let Some(kind) = reader.varint() {
        if let 0x08..=0x0f = kind {
            let Some(data) = reader.stream(kind) else { return };
            if data.end > data.start {
                found.push(data);
            }
        } else if reader.skip_frame(kind).is_none() {
            return;
        }
    }
}

/// Reads from the front of a slice; none if it is too short.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// RFC 9000 §16.
    fn varint(&mut self) -> Option<u64> {
        let len = 1 << (self.peek()? >> 6);
        let bytes = self.take(len)?;
        let value = bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        Some(value & (u64::MAX >> (64 - 8 * len + 2)))
    }

    fn varints(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.varint().map(|_| ()))
    }

    /// A packet with a long header (RFC 9000 §17.2).
    fn skip_long(&mut self) -> Option<()> {
        let first = self.byte()?;
        self.take(4)?;
        for _ in 0..2 {
            let cid = self.byte()?;
            self.take(u64::from(cid))?;
        }
        if first & 0x30 == 0 {
            let token = self.varint()?;
            self.take(token)?;
        }
        let len = self.varint()?;
        self.take(len).map(|_| ())
    }

    fn stream(&mut self, kind: u64) -> Option<Range<u64>> {
        self.varint()?;
        let offset = if kind & 4 == 0 { 0 } else { self.varint()? };
        let len = if kind & 2 == 0 { self.0.len() as u64 } else { self.varint()? };
        self.take(len)?;
        Some(offset..offset + len)
    }

    /// A frame without data of a stream (RFC 9000 §19). None for an unknown one.
    fn skip_frame(&mut self, kind: u64) -> Option<()> {
        match kind {
            0x00 | 0x01 | 0x1e | 0x1f => Some(()),
            0x02 | 0x03 => {
                self.varints(2)?;
                let ranges = self.varint()?;
                self.varints(1 + 2 * ranges + if kind == 3 { 3 } else { 0 })
            }
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => self.varints(1),
            0x05 | 0x11 | 0x15 => self.varints(2),
            0x04 => self.varints(3),
            0xaf => self.varints(4),
            0x06 => {
                self.varint()?;
                let len = self.varint()?;
                self.take(len).map(|_| ())
            }
            0x07 => {
                let len = self.varint()?;
                self.take(len).map(|_| ())
            }
            0x18 => {
                self.varints(2)?;
                let len = self.byte()?;
                self.take(u64::from(len) + 16).map(|_| ())
            }
            0x1a | 0x1b => self.take(8).map(|_| ()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_a_datagram_is_found() {
        // 1-RTT: first byte, connection ID, number; PING, MAX_DATA, a STREAM with offset and length, one up to the end; tag.
        let mut datagram = vec![0x41, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 0x01, 0x10, 0x44, 0x00];
        datagram.extend([0x0e, 0x02, 0x40, 0x80, 0x03, 7, 7, 7, 0x0c, 0x02, 0x83, 0, 0, 1, 7, 7]);
        datagram.extend([0; TAG]);
        let expected = [0x80..0x83, 0x300_0001..0x300_0003];
        assert_eq!(stream_data(&datagram), expected);
        // The same behind an Initial with a token of one byte.
        let mut coalesced = vec![0xc0, 0, 0, 0, 1, 1, 9, 1, 9, 1, 9, 3, 0, 0, 0];
        coalesced.extend(&datagram);
        assert_eq!(stream_data(&coalesced), expected);
        for len in 0..coalesced.len() {
            stream_data(&coalesced[..len]);
        }
    }

    #[test]
    fn a_handshake_takes_one_round_trip() {
        let (mut client, mut server) = (Handshake::new(true, b"c".to_vec()), Handshake::new(false, b"server".to_vec()));
        let mut sent = Vec::new();
        assert!(!client.write(&mut sent));
        server.read(&sent[..sent.len() - 1]);
        assert_eq!(server.peer(), None);
        server.read(&sent[sent.len() - 1..]);
        assert_eq!(server.peer(), Some(&b"c"[..]));
        let (mut hello, mut flight, mut finished) = (Vec::new(), Vec::new(), Vec::new());
        assert!(server.write(&mut hello) && server.write(&mut flight) && !server.write(&mut flight));
        client.read(&hello);
        assert!(client.write(&mut finished) && !client.write(&mut finished) && finished.is_empty());
        client.read(&flight);
        assert!(client.write(&mut finished) && !client.is_going_on());
        assert_eq!(client.peer(), Some(&b"server"[..]));
        server.read(&finished);
        assert!(!server.is_going_on());
    }
}
