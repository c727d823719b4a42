//! Marks of packets and connections. They use twelve bits, so that marks of other programs stay as they are.

use std::fmt;

/// The bits that are used.
pub(crate) const MASK: u32 = 0x0fff_0000;
const BASE: u32 = 0x0500_0000;
/// Generations follow each other in a circle.
pub(crate) const GENERATIONS: u32 = 16;

/// The marks of one instance. Each instance has another generation than the one before it, so that connections which the kernel
/// has opened in between are not taken for connections of the new instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    generation: u32,
}

impl Marks {
    /// The marks of this generation.
    pub fn new(generation: u32) -> Marks {
        Marks { generation: generation % GENERATIONS }
    }

    fn of(self, kind: u32) -> Mark {
        Mark(BASE | kind << 20 | self.generation << 16)
    }

    /// Connections from clients to the device, and their packets.
    pub(crate) fn front(self) -> Mark {
        self.of(1)
    }

    /// Connections from the kernel's sockets to servers, and the packets of servers.
    pub(crate) fn back(self) -> Mark {
        self.of(2)
    }

    /// Packets of these sockets.
    pub(crate) fn out(self) -> Mark {
        self.of(3)
    }

    /// Connections that are left to the kernel.
    pub(crate) fn untouched(self) -> Mark {
        self.of(4)
    }

    /// Connections from the device to servers.
    pub(crate) fn far(self) -> Mark {
        self.of(5)
    }
}

/// The value of a mark, within [`MASK`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark(pub(crate) u32);

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

impl Mark {
    /// The condition of nftables that the mark of `what` (`meta`, `ct`) is this one.
    pub(crate) fn is(self, what: &str) -> String {
        format!("{what} mark & {MASK:#010x} == {self}")
    }

    /// The statement of nftables that sets it.
    pub(crate) fn set(self, what: &str) -> String {
        format!("{what} mark set {what} mark & {:#010x} | {self}", !MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_consecutive_generations_differ_and_use_only_their_bits() {
        let all = |marks: Marks| [marks.front(), marks.back(), marks.out(), marks.untouched(), marks.far()];
        let (one, two) = (all(Marks::new(15)), all(Marks::new(16)));
        for (i, mark) in one.iter().enumerate() {
            assert_eq!(mark.0 & !MASK, 0);
            assert!(!one[..i].contains(mark) && !two.contains(mark));
        }
        assert_eq!(Marks::new(16), Marks::new(0));
    }
}
