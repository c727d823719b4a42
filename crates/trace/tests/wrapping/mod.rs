//! Puts IP packets into the frames and tunnels of others.

/// A frame, or what it will carry: the captured bytes, and the length on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    pub(crate) captured: Vec<u8>,
    pub(crate) len: usize,
}

/// How packets are wrapped: a name, the LINKTYPE, and the frames of one packet.
pub(crate) type Wrapping = (&'static str, u16, fn(&Bytes) -> Vec<Bytes>);

const OUTER: [[u8; 4]; 2] = [[203, 0, 113, 1], [203, 0, 113, 2]];

impl Bytes {
    /// Behind this header.
    fn behind(&self, header: &[u8]) -> Bytes {
        Bytes { captured: [header, &self.captured].concat(), len: header.len() + self.len }
    }

    /// With padding or a checksum at the end, if all of it was captured.
    fn before(&self, trailer: &[u8]) -> Bytes {
        let captured =
            if self.captured.len() == self.len { [&self.captured, trailer].concat() } else { self.captured.clone() };
        Bytes { captured, len: self.len + trailer.len() }
    }

    fn typed(&self, ethertype: u16) -> Bytes {
        self.behind(&[&[2, 0, 0, 0, 0, 0x12, 2, 0, 0, 0, 0, 0x11], &ethertype.to_be_bytes()[..]].concat())
    }

    pub(crate) fn ethernet(&self) -> Bytes {
        self.typed(0x0800)
    }

    /// In an IPv4 packet with the field of flags and offset.
    fn fragment(&self, protocol: u8, id: u16, field: u16) -> Bytes {
        let mut header = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 60, protocol, 0, 0];
        header[2..4].copy_from_slice(&((20 + self.len) as u16).to_be_bytes());
        header[4..6].copy_from_slice(&id.to_be_bytes());
        header[6..8].copy_from_slice(&field.to_be_bytes());
        header.extend(OUTER.concat());
        let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        self.behind(&header)
    }

    fn ip(&self, protocol: u8) -> Bytes {
        self.fragment(protocol, 0, 0)
    }

    fn ipv6(&self, next: u8) -> Bytes {
        let mut header = vec![0x60, 0, 0, 0, 0, 0, next, 60];
        header[4..6].copy_from_slice(&(self.len as u16).to_be_bytes());
        header.extend([[0x20; 16], [0x21; 16]].concat());
        self.behind(&header)
    }

    fn udp(&self, port: u16) -> Bytes {
        let mut header = vec![0x75, 0x30, 0, 0, 0, 0, 0, 0];
        header[2..4].copy_from_slice(&port.to_be_bytes());
        header[4..6].copy_from_slice(&((8 + self.len) as u16).to_be_bytes());
        self.behind(&header).ip(17).ethernet()
    }

    fn gre(&self, header: &[u8]) -> Bytes {
        self.behind(header).ip(47).ethernet()
    }

    fn snap(&self) -> Bytes {
        self.behind(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0])
    }

    /// An 802.11 data frame: the control field, and what follows the addresses.
    fn wlan(&self, control: [u8; 2], rest: &[u8]) -> Bytes {
        let addresses = if control[1] & 3 == 3 { 30 } else { 24 };
        let mut header = vec![0; addresses];
        header[..2].copy_from_slice(&control);
        self.behind(&[&header, rest].concat())
    }

    /// With zeros for what was not captured.
    fn whole(&self) -> Vec<u8> {
        let mut whole = self.captured.clone();
        whole.resize(self.len, 0);
        whole
    }

    /// What IP carries, in pieces of this many bytes: each with its offset, and whether it is the last.
    fn pieces(&self, most: usize) -> Vec<(usize, bool, Bytes)> {
        let whole = self.whole();
        let chunks = whole.chunks(most).zip((0..).step_by(most));
        let piece = |(chunk, offset): (&[u8], usize)| {
            let bytes = Bytes { captured: chunk.to_vec(), len: chunk.len() };
            (offset, offset + chunk.len() == whole.len(), bytes)
        };
        chunks.map(piece).collect()
    }
}

/// An IPv4 packet whose header has its checksum.
pub(crate) fn with_checksum(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[10..12].fill(0);
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    packet
}

/// The identification of the inner packet tells fragments of different packets apart.
fn id(packet: &Bytes) -> u16 {
    let sum = packet.captured.iter().fold(0_u16, |sum, byte| sum.rotate_left(3) ^ u16::from(*byte));
    sum | 1
}

/// The packet itself in fragments of IPv4.
fn fragmented(packet: &Bytes) -> Vec<Bytes> {
    let header = packet.captured[..20].to_vec();
    let payload = Bytes { captured: packet.captured[20..].to_vec(), len: packet.len - 20 };
    let fragments = payload.pieces(552).into_iter().map(|(offset, is_last, piece)| {
        let mut header = header.clone();
        header[2..4].copy_from_slice(&((20 + piece.len) as u16).to_be_bytes());
        header[6..8].copy_from_slice(&((offset / 8) as u16 | if is_last { 0 } else { 0x2000 }).to_be_bytes());
        piece.behind(&header).ethernet()
    });
    fragments.collect()
}

/// In an IPv6 tunnel that is fragmented.
fn in_fragments_of_ipv6(packet: &Bytes) -> Vec<Bytes> {
    let id = u32::from(id(packet)).to_be_bytes();
    let fragments = packet.pieces(600).into_iter().map(|(offset, is_last, piece)| {
        let field = (offset as u16 | u16::from(!is_last)).to_be_bytes();
        let header = [&[4, 0], &field[..], &id].concat();
        piece.behind(&header).ipv6(44).typed(0x86dd)
    });
    fragments.collect()
}

/// In a tunnel over UDP whose packets are fragmented, the last fragment first.
fn in_fragments_of_vxlan(packet: &Bytes) -> Vec<Bytes> {
    let inner = packet.ethernet().behind(&[8, 0, 0, 0, 0, 0, 7, 0]);
    let mut header = vec![0x75, 0x30, 0x12, 0xb5, 0, 0, 0, 0];
    header[4..6].copy_from_slice(&((8 + inner.len) as u16).to_be_bytes());
    let fragments = inner.behind(&header).pieces(800).into_iter().map(|(offset, is_last, piece)| {
        let field = (offset / 8) as u16 | if is_last { 0 } else { 0x2000 };
        piece.fragment(17, id(packet), field).ethernet()
    });
    fragments.rev().collect()
}

fn in_fragments_of_capwap(packet: &Bytes) -> Vec<Bytes> {
    let frame = packet.snap().wlan([0x88, 1], &[0, 0]);
    let fragments = frame.pieces(640).into_iter().map(|(offset, is_last, piece)| {
        let mut header = vec![0, 0x10, 0x03, if is_last { 0xc0 } else { 0x80 }];
        header.extend(id(packet).to_be_bytes());
        header.extend((offset as u16).to_be_bytes());
        piece.behind(&header).udp(5247)
    });
    fragments.collect()
}

/// Two frames in one: the first is no TCP.
fn amsdu(packet: &Bytes) -> Vec<Bytes> {
    let second = packet.snap();
    let mut header = vec![0; 14];
    header[12..].copy_from_slice(&(second.len as u16).to_be_bytes());
    let mut first = vec![0; 14];
    first[13] = 36;
    first.extend([0xaa, 0xaa, 3, 0, 0, 0, 8, 6]);
    first.extend([0; 28]);
    first.extend([0; 2]);
    vec![second.behind(&header).behind(&first).wlan([0x88, 2], &[0x80, 0])]
}

fn one(bytes: Bytes) -> Vec<Bytes> {
    vec![bytes]
}

/// All kinds of wrapping.
pub(crate) const WRAPPINGS: &[Wrapping] = &[
    ("Ethernet with padding and a checksum", 1, |p| one(p.ethernet().before(&[0; 10]))),
    ("NULL", 0, |p| one(p.behind(&[2, 0, 0, 0]))),
    ("LOOP", 108, |p| one(p.behind(&[0, 0, 0, 2]))),
    ("raw IPv4", 228, |p| one(p.clone())),
    ("raw IP of OpenBSD", 14, |p| one(p.clone())),
    ("Linux cooked", 113, |p| one(p.behind(&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]))),
    ("Linux cooked, version 2", 276, |p| one(p.behind(&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0]))),
    ("NFLOG", 239, |p| {
        let len = (4 + p.captured.len() as u16).to_le_bytes();
        one(p.behind(&[2, 0, 0, 0, 5, 0, 10, 0, 0, 0, 0, 0, len[0], len[1], 9, 0]))
    }),
    ("VLAN", 1, |p| one(p.behind(&[0, 5, 8, 0]).typed(0x8100))),
    ("QinQ", 1, |p| one(p.behind(&[0, 5, 0x81, 0, 0, 6, 8, 0]).typed(0x88a8))),
    ("E-tag", 1, |p| one(p.behind(&[0, 0, 0, 1, 0, 0, 8, 0]).typed(0x893f))),
    ("VN-tag", 1, |p| one(p.behind(&[0, 0, 0, 1, 8, 0]).typed(0x8926))),
    ("provider backbone bridge", 1, |p| one(p.ethernet().behind(&[0, 0, 0, 9]).typed(0x88e7))),
    ("MACsec without encryption", 1, |p| one(p.behind(&[0, 0, 0, 0, 0, 1, 8, 0]).before(&[0; 16]).typed(0x88e5))),
    ("802.3 with SNAP", 1, |p| {
        let snap = p.snap();
        let len = snap.len as u16;
        one(snap.typed(len))
    }),
    ("MPLS", 1, |p| one(p.behind(&[0, 1, 0, 0x40, 0, 2, 1, 0x40]).typed(0x8847))),
    ("Ethernet over MPLS", 1, |p| one(p.ethernet().behind(&[0, 1, 1, 0x40]).typed(0x8847))),
    ("Ethernet over MPLS with a control word", 1, |p| {
        one(p.ethernet().behind(&[0, 1, 1, 0x40, 0, 0, 0, 7]).typed(0x8848))
    }),
    ("PPPoE", 1, |p| one(p.behind(&[0x11, 0, 0, 1, 0, 0, 0, 0x21]).typed(0x8864))),
    ("PPPoE with a compressed protocol", 1, |p| one(p.behind(&[0x11, 0, 0, 1, 0, 0, 0x21]).typed(0x8864))),
    ("PPP", 9, |p| one(p.behind(&[0xff, 3, 0, 0x21]))),
    ("PPP with all fields compressed", 9, |p| one(p.behind(&[0x21]))),
    ("PPP with the direction", 204, |p| one(p.behind(&[1, 0xff, 3, 0x21]))),
    ("HDLC of Cisco", 104, |p| one(p.behind(&[0x0f, 0, 8, 0]))),
    ("Frame Relay", 107, |p| one(p.behind(&[0x18, 0x41, 3, 0xcc]))),
    ("FDDI", 10, |p| one(p.snap().behind(&[0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))),
    ("Token Ring", 6, |p| one(p.snap().behind(&[0x10, 0x40, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 2, 0]))),
    ("PKTAP", 258, |p| {
        let mut header = vec![0; 108];
        (header[0], header[4], header[8]) = (108, 1, 1);
        one(p.ethernet().behind(&header))
    }),
    ("PFLOG", 117, |p| {
        let mut header = vec![0; 64];
        header[0] = 61;
        one(p.behind(&header))
    }),
    ("802.11", 105, |p| one(p.snap().wlan([0x08, 1], &[]))),
    ("802.11 with QoS and four addresses", 105, |p| one(p.snap().wlan([0x88, 3], &[0, 0]))),
    ("802.11 with HT control", 105, |p| one(p.snap().wlan([0x88, 0x81], &[0; 6]))),
    ("A-MSDU", 105, amsdu),
    ("radiotap", 127, |p| one(p.snap().wlan([0x88, 1], &[0, 0]).behind(&[0, 0, 9, 0, 2, 0, 0, 0, 0x10]))),
    ("radiotap with padding", 127, |p| {
        let header = [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[9; 8], &[0x20]].concat();
        one(p.snap().wlan([0x88, 1], &[0; 4]).behind(&header))
    }),
    ("PPI", 192, |p| one(p.snap().wlan([0x08, 2], &[]).behind(&[0, 0, 8, 0, 105, 0, 0, 0]))),
    ("Prism", 119, |p| {
        let mut header = vec![0; 144];
        (header[0], header[4]) = (0x44, 144);
        one(p.snap().wlan([0x08, 2], &[]).behind(&header))
    }),
    ("AVS", 163, |p| {
        let mut header = vec![0; 64];
        header[..8].copy_from_slice(&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64]);
        one(p.snap().wlan([0x08, 2], &[]).behind(&header))
    }),
    ("IP in IP", 1, |p| one(p.ip(4).ethernet())),
    ("IPv4 in IPv6", 1, |p| one(p.ipv6(4).typed(0x86dd))),
    ("IPv6 with extensions", 1, |p| one(p.behind(&[4, 0, 0, 0, 0, 0, 0, 0]).ipv6(60).typed(0x86dd))),
    ("IPsec without encryption", 1, |p| {
        one(p.before(&[1, 2, 2, 4]).before(&[0; 12]).behind(&[0, 0, 0, 9, 0, 0, 0, 1]).ip(50).ethernet())
    }),
    ("IPsec that authenticates", 1, |p| {
        one(p.behind(&[[4, 4, 0, 0], [0; 4], [0; 4], [0; 4], [0; 4], [0; 4]].concat()).ip(51).ethernet())
    }),
    ("GRE", 1, |p| one(p.gre(&[0, 0, 8, 0]))),
    ("GRE with all options", 1, |p| one(p.gre(&[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]))),
    ("NVGRE", 1, |p| one(p.ethernet().gre(&[0x20, 0, 0x65, 0x58, 0, 0, 7, 1]))),
    ("PPTP", 1, |p| one(p.behind(&[0xff, 3, 0x21]).gre(&[0x30, 1, 0x88, 0x0b, 0, 0, 0, 0, 0, 0, 0, 1]))),
    ("ERSPAN I", 1, |p| one(p.ethernet().gre(&[0, 0, 0x88, 0xbe]))),
    ("ERSPAN II", 1, |p| one(p.ethernet().gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 2]))),
    ("ERSPAN III", 1, |p| {
        one(p.ethernet().gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0]))
    }),
    ("ERSPAN III with a subheader", 1, |p| {
        let header = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        one(p.ethernet().gre(&header))
    }),
    ("802.11 in GRE", 1, |p| one(p.snap().wlan([0x88, 1], &[0, 0]).gre(&[0, 0, 0x82, 0]))),
    ("AYIYA", 1, |p| one(p.behind(&[&[0x40, 0x50, 0, 41][..], &[9; 40]].concat()).udp(5072))),
    ("VXLAN", 1, |p| one(p.ethernet().behind(&[8, 0, 0, 0, 0, 0, 7, 0]).udp(4789))),
    ("VXLAN-GPE", 1, |p| one(p.behind(&[0x0c, 0, 0, 1, 0, 0, 7, 0]).udp(4790))),
    ("GENEVE with options", 1, |p| {
        one(p.ethernet().behind(&[2, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 1, 0, 0, 0, 0]).udp(6081))
    }),
    ("GTP-U", 1, |p| one(p.behind(&[0x30, 0xff, 0, 0, 0, 0, 0, 1]).udp(2152))),
    ("GTP-U with extensions", 1, |p| {
        one(p.behind(&[0x34, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0]).udp(2152))
    }),
    ("L2TP", 1, |p| one(p.behind(&[0x40, 2, 0, 0, 0, 1, 0, 2, 0xff, 3, 0, 0x21]).udp(1701))),
    ("MPLS over UDP", 1, |p| one(p.behind(&[0, 1, 1, 0x40]).udp(6635))),
    ("LISP", 1, |p| one(p.behind(&[0; 8]).udp(4341))),
    ("TZSP", 1, |p| one(p.ethernet().behind(&[1, 0, 0, 1, 10, 1, 0xc0, 1]).udp(37008))),
    ("CAPWAP with 802.3", 1, |p| one(p.ethernet().behind(&[0, 0x10, 2, 0, 0, 0, 0, 0]).udp(5247))),
    ("CAPWAP with 802.11", 1, |p| {
        one(p.snap().wlan([0x88, 1], &[0, 0]).behind(&[0, 0x10, 3, 0, 0, 0, 0, 0]).udp(5247))
    }),
    ("CAPWAP of Cisco", 1, |p| {
        one(p.snap().wlan([0x0a, 0x88], &[0, 0]).behind(&[0, 0x10, 3, 0, 0, 0, 0, 0]).udp(5247))
    }),
    ("NSH", 1, |p| one(p.behind(&[0, 2, 1, 1, 0, 0, 1, 255]).typed(0x894f))),
    ("a tunnel in a tunnel in a tunnel", 1, |p| {
        let inner = p.ethernet().behind(&[8, 0, 0, 0, 0, 0, 7, 0]).udp(4789);
        one(inner.gre(&[0x20, 0, 0x65, 0x58, 0, 0, 7, 1]).behind(&[0, 1, 1, 0x40]).typed(0x8847))
    }),
    ("fragments", 1, fragmented),
    ("fragments of IPv6", 1, in_fragments_of_ipv6),
    ("fragments of VXLAN, the last first", 1, in_fragments_of_vxlan),
    ("fragments of CAPWAP", 1, in_fragments_of_capwap),
];
