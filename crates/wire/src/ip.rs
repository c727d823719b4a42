//! The IP header of everything that is sent.

use std::net::IpAddr;

use reknit_tcp::segment::Ecn;

use crate::checksum;

/// Protocol numbers.
pub(crate) const ICMP_V4: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP_V6: u8 = 58;

const DONT_FRAGMENT: u8 = 0x40;

/// What the header says.
pub(crate) struct Header {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) hop_limit: u8,
    pub(crate) ecn: Ecn,
}

impl Header {
    /// Writes the header of a packet with `len` further bytes to `into`, which is cleared first. Returns the sum of the
    /// pseudo-header.
    ///
    /// # Panics
    /// If the two addresses are of different families, or the packet is too long.
    pub(crate) fn put(&self, len: usize, into: &mut Vec<u8>) -> u64 {
        into.clear();
        let addresses_at = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.put_v4(source.octets(), destination.octets(), len, into);
                12
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.put_v6(source.octets(), destination.octets(), len, into);
                8
            }
            _ => panic!("addresses of different families"),
        };
        checksum::pseudo_header(&into[addresses_at..], self.protocol, len)
    }

    fn put_v4(&self, source: [u8; 4], destination: [u8; 4], len: usize, into: &mut Vec<u8>) {
        let mut ip = [0; 20];
        let total = u16::try_from(ip.len() + len).expect("what is sent fits a packet");
        ip[0] = 0x45;
        ip[1] = ecn_to_wire(self.ecn);
        put(&mut ip, 2, total.to_be_bytes());
        ip[6] = DONT_FRAGMENT;
        ip[8] = self.hop_limit;
        ip[9] = self.protocol;
        put(&mut ip, 12, source);
        put(&mut ip, 16, destination);
        let sum = checksum::fold(checksum::sum(&ip));
        put(&mut ip, 10, (!sum).to_ne_bytes());
        into.extend_from_slice(&ip);
    }

    fn put_v6(&self, source: [u8; 16], destination: [u8; 16], len: usize, into: &mut Vec<u8>) {
        let mut ip = [0; 40];
        ip[0] = 0x60;
        ip[1] = ecn_to_wire(self.ecn) << 4;
        put(&mut ip, 4, (len as u16).to_be_bytes());
        ip[6] = self.protocol;
        ip[7] = self.hop_limit;
        put(&mut ip, 8, source);
        put(&mut ip, 24, destination);
        into.extend_from_slice(&ip);
    }
}

/// Writes `bytes` to `into` from `at` on.
pub(crate) fn put<const N: usize>(into: &mut [u8], at: usize, bytes: [u8; N]) {
    into[at..at + N].copy_from_slice(&bytes);
}

fn ecn_to_wire(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotCapable => 0,
        Ecn::Capable1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Congested => 3,
    }
}
