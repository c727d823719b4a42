//! Initial sequence numbers that an off-path attacker cannot guess (RFC 6528).

use std::hash::Hasher;
use std::net::SocketAddr;

use reknit_units::Instant;
use siphasher::sip::SipHasher24;

use crate::seq::SeqNum;

/// The secret key of a host: `ISN = M + F(addresses, ports, key)` with a clock M that ticks every 4 microseconds and
/// SipHash-2-4 as F. The caller supplies the key, because the engine has no source of randomness.
#[derive(Clone, Copy)]
pub struct IsnKey {
    key: [u8; 16],
}

impl IsnKey {
    /// A key of 16 random bytes, drawn once per host.
    pub const fn new(key: [u8; 16]) -> IsnKey {
        IsnKey { key }
    }

    /// The initial sequence number of the connection from `local` to `remote` at `now`.
    pub fn isn(&self, now: Instant, local: SocketAddr, remote: SocketAddr) -> SeqNum {
        let ticks = (now.as_nanos() / 4_000) as u32;
        SeqNum(ticks.wrapping_add(self.hash(local, remote) as u32))
    }

    /// The offset of the timestamp clock for the same pair, so that timestamps do not reveal the host's uptime (RFC
    /// 7323 §7.1).
    pub fn timestamp_offset(&self, local: SocketAddr, remote: SocketAddr) -> u32 {
        (self.hash(local, remote) >> 32) as u32
    }

    /// Bits for [`crate::Connection::set_secret`].
    pub fn secret(&self, local: SocketAddr, remote: SocketAddr) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u8(1);
        hasher.write_u64(self.hash(local, remote));
        hasher.finish()
    }

    fn hash(&self, local: SocketAddr, remote: SocketAddr) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        for address in [local, remote] {
            match address.ip() {
                std::net::IpAddr::V4(ip) => hasher.write(&ip.octets()),
                std::net::IpAddr::V6(ip) => hasher.write(&ip.octets()),
            }
            hasher.write(&address.port().to_be_bytes());
        }
        hasher.finish()
    }
}

impl std::fmt::Debug for IsnKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IsnKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use reknit_units::Duration;

    use super::*;

    #[test]
    fn isns_advance_with_the_clock_and_differ_by_connection_and_key() {
        let key = IsnKey::new([7; 16]);
        let (a, b) = ("10.0.0.1:80".parse().unwrap(), "10.0.0.2:4000".parse().unwrap());
        let now = Instant::ZERO + Duration::from_secs(1);
        let isn = key.isn(now, a, b);
        assert_eq!(key.isn(now + Duration::from_millis(1), a, b), isn.plus(250));
        assert_ne!(key.isn(now, b, a), isn);
        assert_ne!(IsnKey::new([8; 16]).isn(now, a, b), isn);
    }
    #[test]
    fn the_offset_of_timestamps_belongs_to_the_pair() {
        // So the timestamps of one connection after the other increase (RFC 6191 §2).
        let key = IsnKey::new([7; 16]);
        let (a, b) = ("10.0.0.1:80".parse().unwrap(), "10.0.0.2:4000".parse().unwrap());
        assert_eq!(key.timestamp_offset(a, b), key.timestamp_offset(a, b));
        assert_ne!(key.timestamp_offset(a, b), key.timestamp_offset(b, a));
        assert_ne!(key.timestamp_offset(a, b), IsnKey::new([8; 16]).timestamp_offset(a, b));
    }
}
