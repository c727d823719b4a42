//! What the next header of a frame may be. The reader of each header returns it.

use super::Skipped;
use super::rest::Cursor;

/// The type of the bytes that follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layer {
    /// A frame of a LINKTYPE of the pcap registry.
    Link(u16),
    Ethernet,
    /// What follows an `EtherType`.
    EtherType(u16),
    /// IEEE 802.2.
    Llc,
    Ppp,
    Mpls,
    /// IEEE 802.11.
    Wlan,
    /// IEEE 802.11: several frames in one.
    Amsdu,
    /// IPv4 or IPv6.
    Ip,
    /// What an IP packet of this protocol carries.
    Protocol(u8),
    /// A part of a packet.
    Fragment(Fragment),
}

/// A fragment: its packet is identified by both addresses, what it carries, and `id`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fragment {
    pub(super) id: u32,
    pub(super) of: Whole,
    /// Bytes of the packet before this fragment.
    pub(super) offset: usize,
    pub(super) is_last: bool,
}

/// What the fragments are parts of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Whole {
    Protocol(u8),
    Wlan,
    Ethernet,
}

/// The layer after a header, or why it is not read.
pub(super) type Next<'a> = Result<(Layer, Cursor<'a>), Skipped>;
