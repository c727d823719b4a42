//! Buffers that many streams use in turn, so that idle ones have none, and busy ones have some that are in the cache.

use std::collections::VecDeque;

use super::receive_buffer::Page;
use crate::connection::ConnectionBuffers;
use crate::pool::Pool;

/// The buffers of an owner of many streams. It lends them to a stream before a call ([`crate::Stream::lend`]), and takes back
/// afterwards what is empty ([`crate::Stream::give_back`]).
#[derive(Debug, Default)]
pub struct Buffers {
    pub(super) connection: ConnectionBuffers,
    pub(super) bytes: Pool<VecDeque<u8>>,
    pub(super) pages: Pool<VecDeque<Option<Page>>>,
    /// Empty pages: all of them are lent together.
    pub(super) empty_pages: Vec<Page>,
}
