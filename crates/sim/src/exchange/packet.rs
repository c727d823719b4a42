//! A packet of another transport on the path.

use std::ops::Range;

use reknit_path::{Packet, flow_hash};
use reknit_units::{Bytes, Instant};

use crate::roles::Role;
use crate::trace::addresses;

#[derive(Debug)]
pub(super) struct Carried {
    pub(super) packet: Vec<u8>,
    pub(super) size: Bytes,
    /// The bytes of the stream that it carries; empty for ACKs and the like.
    pub(super) data: Vec<Range<u64>>,
    pub(super) flow: u32,
    pub(super) from: Role,
    pub(super) sent: Instant,
    /// True for a copy that the network made.
    pub(super) copy: bool,
}

impl Packet for Carried {
    fn size(&self) -> Bytes {
        self.size
    }

    fn copy(&self) -> Carried {
        Carried { packet: self.packet.clone(), data: self.data.clone(), copy: true, ..*self }
    }

    fn flow(&self) -> u32 {
        let [source, destination] = addresses(self.flow, self.from);
        flow_hash(source, destination)
    }
}
