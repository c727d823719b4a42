//! Data that may not have arrived. Counted when a connection without an owner ends, and by [`crate::Stack::undelivered`].

/// Connections on which written data or the end of the stream is not acknowledged by the peer, and the bytes. Acknowledged
/// data has reached the peer's TCP; only the peer's application knows whether it has read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, thiserror::Error)]
#[error("{bytes} bytes on {connections} connection{} were not acknowledged", if *connections == 1 { "" } else { "s" })]
pub struct Undelivered {
    /// Connections.
    pub connections: u64,
    /// Bytes; none if only the end of a stream is missing.
    pub bytes: u64,
}

impl Undelivered {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.connections += 1;
        self.bytes += bytes;
    }

    /// True if everything has arrived.
    pub fn is_empty(&self) -> bool {
        *self == Undelivered::default()
    }

    /// What has been added since `before`.
    #[must_use]
    pub fn since(&self, before: &Undelivered) -> Undelivered {
        let (connections, bytes) = (self.connections - before.connections, self.bytes - before.bytes);
        Undelivered { connections, bytes }
    }

    /// Both together.
    #[must_use]
    pub fn and(&self, other: &Undelivered) -> Undelivered {
        Undelivered { connections: self.connections + other.connections, bytes: self.bytes + other.bytes }
    }
}
