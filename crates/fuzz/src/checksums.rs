//! Makes the checksums of packets right, which no fuzzer would guess.

/// Protocol numbers.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const ICMP_V6: u8 = 58;

/// Sets the checksums of an IPv4 header, and of a TCP segment or an ICMP message in a packet.
pub(crate) fn fix(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => mend_v4(packet),
        Some(6) if packet.len() >= 40 => {
            let len = 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]]));
            let (protocol, addresses) = (packet[6], packet[8..40].to_vec());
            if let Some(payload) = packet.get_mut(40..len) {
                mend_payload(payload, protocol, &addresses);
            }
        }
        _ => {}
    }
}

fn mend_v4(packet: &mut [u8]) {
    let header = usize::from(packet[0] & 15) * 4;
    if header < 20 || packet.len() < header {
        return;
    }
    set(&mut packet[..header], 10, &[]);
    let len = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let (protocol, addresses) = (packet[9], packet[12..20].to_vec());
    if let Some(payload) = packet.get_mut(header..len) {
        mend_payload(payload, protocol, &addresses);
    }
}

fn mend_payload(payload: &mut [u8], protocol: u8, addresses: &[u8]) {
    let mut pseudo = addresses.to_vec();
    pseudo.extend((payload.len() as u32).to_be_bytes());
    pseudo.extend([0, 0, 0, protocol]);
    match protocol {
        TCP if payload.len() >= 20 => set(payload, 16, &pseudo),
        ICMP if payload.len() >= 8 => set(payload, 2, &[]),
        ICMP_V6 if payload.len() >= 8 => set(payload, 2, &pseudo),
        _ => {}
    }
}

/// Sets the checksum at `at` (RFC 1071).
fn set(bytes: &mut [u8], at: usize, pseudo: &[u8]) {
    bytes[at..at + 2].fill(0);
    let words = pseudo.chunks(2).chain(bytes.chunks(2));
    let mut sum: u32 =
        words.map(|word| u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}
