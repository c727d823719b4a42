//! The two ends of a connection, and values of which each end has one.

use std::ops::{Index, IndexMut};

use reknit_tcp::Connection;
use reknit_tcp::seams::ShownName;

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// The end that sends data.
    Sender,
    /// The end that receives data.
    Receiver,
}

impl Role {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Role {
        match self {
            Role::Sender => Role::Receiver,
            Role::Receiver => Role::Sender,
        }
    }

    /// Calls `show` for each number that the plug-ins of `connection`, whose state is that at this end, show: those of the
    /// sender's seams at the sender of data, those of the receiver's seams at its receiver.
    pub(crate) fn show(self, connection: &Connection, show: &mut dyn FnMut(ShownName, f64)) {
        match self {
            Role::Sender => connection.show_sender(show),
            Role::Receiver => connection.show_receiver(show),
        }
    }
}

/// One value for each end, indexed by [`Role`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PerRole<T> {
    pub(crate) sender: T,
    pub(crate) receiver: T,
}

impl<T> PerRole<T> {
    /// The values with their ends.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Role, &T)> {
        [(Role::Sender, &self.sender), (Role::Receiver, &self.receiver)].into_iter()
    }

    /// The values with their ends, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Role, &mut T)> {
        [(Role::Sender, &mut self.sender), (Role::Receiver, &mut self.receiver)].into_iter()
    }
}

impl<T> Index<Role> for PerRole<T> {
    type Output = T;

    fn index(&self, end: Role) -> &T {
        match end {
            Role::Sender => &self.sender,
            Role::Receiver => &self.receiver,
        }
    }
}

impl<T> IndexMut<Role> for PerRole<T> {
    fn index_mut(&mut self, end: Role) -> &mut T {
        match end {
            Role::Sender => &mut self.sender,
            Role::Receiver => &mut self.receiver,
        }
    }
}
