//! Writes packets.

use reknit_tcp::Segment;
use reknit_tcp::segment::{Options, Timestamps};

use crate::ip::put;
use crate::{Endpoints, checksum, experiment, ip, kind};

/// The initial TTL or hop limit (RFC 1700).
pub const HOP_LIMIT: u8 = 64;

/// Where the TCP header has its checksum.
const CHECKSUM_AT: usize = 16;
/// Where it says how long it is.
const DATA_OFFSET_AT: usize = 12;

/// Writes the IP packet with `segment` and `payload` to `into`, which is cleared first.
///
/// If `segment` has another length than `payload`, the length of the payload is used.
///
/// # Panics
/// If the two addresses are of different families, or if the options do not fit a header; options of the engine always
/// do.
pub fn encode(endpoints: Endpoints, segment: &Segment, payload: &[u8], into: &mut Vec<u8>) {
    encode_with(endpoints, HOP_LIMIT, segment, payload, into);
}

/// As [`encode`], with this TTL or hop limit.
///
/// # Panics
/// As [`encode`].
pub fn encode_with(endpoints: Endpoints, hop_limit: u8, segment: &Segment, payload: &[u8], into: &mut Vec<u8>) {
    encode_headers(endpoints, hop_limit, segment, payload, into);
    into.extend_from_slice(payload);
}

/// Writes the headers of the IP packet with `segment` and `payload` to `into`, which is cleared first, so that a payload that
/// is already in its place need not be copied.
///
/// # Panics
/// As [`encode`].
pub fn encode_headers(endpoints: Endpoints, hop_limit: u8, segment: &Segment, payload: &[u8], into: &mut Vec<u8>) {
    let (ip_len, pseudo) = put_headers(endpoints, hop_limit, segment, payload.len(), into);
    // A header consists of whole words, so that both sums can be added.
    let sum = pseudo + checksum::sum(&into[ip_len..]) + checksum::sum(payload);
    put(into, ip_len + CHECKSUM_AT, (!checksum::fold(sum)).to_ne_bytes());
}

/// Writes the headers of the IP packet with `segment` and a payload of `payload_len` bytes to `into`, which is cleared
/// first. The TCP checksum covers only the pseudo-header; the device that sends the packet computes the rest (virtio 1.2
/// §5.1.6). Returns the length of the IP header.
///
/// # Panics
/// As [`encode`].
pub fn encode_headers_for_offload(
    endpoints: Endpoints,
    hop_limit: u8,
    segment: &Segment,
    payload_len: usize,
    into: &mut Vec<u8>,
) -> usize {
    let (ip_len, pseudo) = put_headers(endpoints, hop_limit, segment, payload_len, into);
    put(into, ip_len + CHECKSUM_AT, checksum::fold(pseudo).to_ne_bytes());
    ip_len
}

/// Writes both headers, with a TCP checksum of zero. Returns the length of the IP header and the sum of the pseudo-header.
fn put_headers(
    endpoints: Endpoints,
    hop_limit: u8,
    segment: &Segment,
    payload_len: usize,
    into: &mut Vec<u8>,
) -> (usize, u64) {
    let options = &segment.options;
    let len = 20 + options.wire_len() + payload_len;
    let header = ip::Header {
        source: endpoints.source.ip(),
        destination: endpoints.destination.ip(),
        protocol: ip::TCP,
        hop_limit,
        ecn: segment.ecn,
    };
    let pseudo = header.put(len, into);
    let ip_len = into.len();
    put_tcp(endpoints, segment, into);
    put_options(options, into);
    experiment::append(&options.experiment, into);
    let words = (into.len() - ip_len) / 4;
    assert!(words < 16, "the engine's options fit a header");
    into[ip_len + DATA_OFFSET_AT] = (words as u8) << 4;
    (ip_len, pseudo)
}

/// The fixed part of the header, without its length and checksum.
fn put_tcp(endpoints: Endpoints, segment: &Segment, into: &mut Vec<u8>) {
    let mut tcp = [0; 20];
    put(&mut tcp, 0, endpoints.source.port().to_be_bytes());
    put(&mut tcp, 2, endpoints.destination.port().to_be_bytes());
    put(&mut tcp, 4, segment.seq.0.to_be_bytes());
    put(&mut tcp, 8, segment.ack.0.to_be_bytes());
    tcp[13] = segment.flags.bits();
    put(&mut tcp, 14, segment.window.to_be_bytes());
    into.extend_from_slice(&tcp);
}

/// The standard options, in the order and with the padding that [`Options::wire_len`] assumes. The experimental option
/// follows them.
fn put_options(options: &Options, into: &mut Vec<u8>) {
    if let Some(mss) = options.mss {
        let [high, low] = mss.to_be_bytes();
        into.extend_from_slice(&[kind::MSS, 4, high, low]);
    }
    match (options.timestamps, options.sack_permitted) {
        (Some(timestamps), true) => put_timestamps([kind::SACK_PERMITTED, 2], timestamps, into),
        (Some(timestamps), false) => put_timestamps([kind::NOP, kind::NOP], timestamps, into),
        (None, true) => into.extend_from_slice(&[kind::SACK_PERMITTED, 2, kind::NOP, kind::NOP]),
        (None, false) => {}
    }
    if let Some(shift) = options.window_scale {
        into.extend_from_slice(&[kind::NOP, kind::WINDOW_SCALE, 3, shift]);
    }
    let blocks = options.sack.as_slice();
    if !blocks.is_empty() {
        into.extend_from_slice(&[kind::NOP, kind::NOP, kind::SACK, 2 + 8 * blocks.len() as u8]);
    }
    for block in blocks {
        into.extend_from_slice(&block.left.0.to_be_bytes());
        into.extend_from_slice(&block.right.0.to_be_bytes());
    }
}

/// Timestamps after what pads them to whole words.
fn put_timestamps(before: [u8; 2], timestamps: Timestamps, into: &mut Vec<u8>) {
    let mut option = [0; 12];
    put(&mut option, 0, before);
    put(&mut option, 2, [kind::TIMESTAMPS, 10]);
    put(&mut option, 4, timestamps.val.to_be_bytes());
    put(&mut option, 8, timestamps.ecr.to_be_bytes());
    into.extend_from_slice(&option);
}
