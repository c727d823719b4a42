//! Capture formats that are not supported: they are recognized so that the error message can say how to convert them.

/// The first bytes of files, and what they are.
const MAGIC: &[(&[u8], &str)] = &[
    (b"snoop\0\0\0", "snoop (Solaris)"),
    (b"GMBU", "Microsoft Network Monitor 2"),
    (b"RTSS", "Microsoft Network Monitor 1"),
    (b"TRSNIFF data    \x1a", "Sniffer"),
    (b"XCP\0", "Sniffer or NetXRay for Windows"),
    (b"VL\0\0", "NetXRay"),
    (b"\x05VNF", "Visual Networks"),
    (b"iptrace 1.0", "iptrace (AIX)"),
    (b"iptrace 2.0", "iptrace (AIX)"),
    (b"TR\0\x64\0", "nettl (HP-UX)"),
    (b"\xaa\xaa\xaa\xaa", "5View"),
    (b"\x7fver", "EtherPeek, OmniPeek or TokenPeek"),
    (b"btsnoop\0", "btsnoop (Bluetooth)"),
    (b"DBS-Etherwatch", "DBS Etherwatch (VMS)"),
    (b"Daintree", "Daintree Sensor Network Analyzer"),
    (b"LOGG", "Vector BLF"),
    (b"\x1c\x00\x01\xac", "IXIA (pcap of IxNetwork)"),
    (b"\x1c\x00\x01\xab", "IXIA (pcap of IxNetwork)"),
    (b"\xac\x01\x00\x1c", "IXIA (pcap of IxNetwork)"),
    (b"\xab\x01\x00\x1c", "IXIA (pcap of IxNetwork)"),
];

/// The name of the format of a file that begins with these bytes: as many as there are, without waiting for more.
pub(super) fn recognize(start: &[u8]) -> Option<&'static str> {
    let known = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, name)| *name);
    known.or_else(|| is_erf(start).then_some("ERF (Endace)"))
}

/// ERF has no magic: each record begins with a time, whose whole seconds are its upper half, in the byte order of Intel; a type;
/// flags; and, in network byte order, the lengths of the record and on the wire.
fn is_erf(start: &[u8]) -> bool {
    const HEADER: usize = 16;
    /// Seconds since 1970: from 1990 on.
    const FIRST: u32 = 631_152_000;
    const TYPES: std::ops::RangeInclusive<u8> = 1..=48;
    let header = |at: usize| {
        let header: &[u8; HEADER] = start.get(at..)?.first_chunk()?;
        let seconds = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let [record, wire] = [[header[10], header[11]], [header[14], header[15]]].map(u16::from_be_bytes);
        let is_likely = seconds >= FIRST && TYPES.contains(&(header[8] & 0x7f)) && usize::from(record) >= HEADER;
        (is_likely && wire > 0).then_some((seconds, usize::from(record)))
    };
    let Some((seconds, len)) = header(0) else { return false };
    // The next record follows within a day.
    start.len() == len || header(len).is_some_and(|(next, _)| next.abs_diff(seconds) < 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognized() {
        assert_eq!(recognize(b"snoop\0\0\0\0\0\0\x02\0\0\0\x04"), Some("snoop (Solaris)"));
        assert_eq!(recognize(b"GMBU\0\x02"), Some("Microsoft Network Monitor 2"));
        assert_eq!(recognize(b"GIF89a"), None);
        let mut erf = vec![0, 0, 0, 0x80, 0x10, 0x20, 0x30, 0x65, 2, 4, 0, 20, 0, 0, 0, 60, 1, 2, 3, 4];
        erf.extend(erf.clone());
        assert_eq!(recognize(&erf), Some("ERF (Endace)"));
        erf[28] = 99;
        assert_eq!(recognize(&erf), None);
    }
}
