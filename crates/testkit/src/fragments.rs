//! Cuts packets into fragments.

/// The fragments of an IPv4 packet without options, or an IPv6 packet without extension headers, each with at most `most` bytes of
/// payload, a multiple of 8.
pub fn fragments(packet: &[u8], most: usize, id: u16) -> Vec<Vec<u8>> {
    let is_v6 = packet[0] >> 4 == 6;
    let (header, payload) = packet.split_at(if is_v6 { 40 } else { 20 });
    let count = payload.len().div_ceil(most);
    let pieces = payload.chunks(most).enumerate();
    pieces.map(|(n, piece)| fragment(header, piece, (n * most) as u16, n + 1 < count, id)).collect()
}

/// One fragment: `header` is that of the packet, and `offset` a multiple of 8.
pub fn fragment(header: &[u8], payload: &[u8], offset: u16, more: bool, id: u16) -> Vec<u8> {
    let mut fragment = header.to_vec();
    if header[0] >> 4 == 6 {
        fragment[4..6].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes());
        let protocol = std::mem::replace(&mut fragment[6], 44);
        fragment.extend_from_slice(&[protocol, 0]);
        fragment.extend_from_slice(&(offset | u16::from(more)).to_be_bytes());
        fragment.extend_from_slice(&u32::from(id).to_be_bytes());
    } else {
        fragment[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        fragment[4..6].copy_from_slice(&id.to_be_bytes());
        fragment[6..8].copy_from_slice(&((u16::from(more) << 13) | (offset / 8)).to_be_bytes());
        fragment[10..12].fill(0);
        let sum: u32 = fragment.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        fragment[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
    fragment.extend_from_slice(payload);
    fragment
}
