//! The names of sockets. `Table::insert` gives a new one to each socket.

/// Names a socket. It is never used for another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SocketId {
    index: u32,
    generation: u32,
}

impl SocketId {
    pub(crate) fn new(index: u32, generation: u32) -> SocketId {
        SocketId { index, generation }
    }

    /// Its index in the table.
    pub(crate) fn place(self) -> u32 {
        self.index
    }

    /// How many sockets had this index before.
    pub(crate) fn generation(self) -> u32 {
        self.generation
    }

    /// A small number, as an index for the caller's tables. It is reused when the socket is gone.
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// As one number, for other languages. It is not 0.
    pub fn to_bits(self) -> u64 {
        (u64::from(self.generation) << 32) | (u64::from(self.index) + 1)
    }

    /// The reverse of [`SocketId::to_bits`]. Any number is allowed; most name no socket.
    pub fn from_bits(bits: u64) -> SocketId {
        SocketId { index: (bits as u32).wrapping_sub(1), generation: (bits >> 32) as u32 }
    }
}
