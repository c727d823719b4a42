//! The two ends of a connection, and values of which each end has one.

use std::ops::{Index, IndexMut};

use reknit_tcp::Connection;
use reknit_tcp::seams::ShownName;

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    /// The end that sends data.
    Sender,
    /// The end that receives data.
    Receiver,
}

impl End {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> End {
        match self {
            End::Sender => End::Receiver,
            End::Receiver => End::Sender,
        }
    }

    /// Calls `show` for each number that the plug-ins of `connection`, whose state is that at this end, show: those of the
    /// sender's seams at the sender of data, those of the receiver's seams at its receiver.
    pub(crate) fn show(self, connection: &Connection, show: &mut dyn FnMut(ShownName, f64)) {
        match self {
            End::Sender => connection.show_sender(show),
            End::Receiver => connection.show_receiver(show),
        }
    }
}

/// One value for each end, indexed by [`End`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PerEnd<T> {
    pub(crate) sender: T,
    pub(crate) receiver: T,
}

impl<T> PerEnd<T> {
    /// The values with their ends.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (End, &T)> {
        [(End::Sender, &self.sender), (End::Receiver, &self.receiver)].into_iter()
    }

    /// The values with their ends, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (End, &mut T)> {
        [(End::Sender, &mut self.sender), (End::Receiver, &mut self.receiver)].into_iter()
    }
}

impl<T> Index<End> for PerEnd<T> {
    type Output = T;

    fn index(&self, end: End) -> &T {
        match end {
            End::Sender => &self.sender,
            End::Receiver => &self.receiver,
        }
    }
}

impl<T> IndexMut<End> for PerEnd<T> {
    fn index_mut(&mut self, end: End) -> &mut T {
        match end {
            End::Sender => &mut self.sender,
            End::Receiver => &mut self.receiver,
        }
    }
}
