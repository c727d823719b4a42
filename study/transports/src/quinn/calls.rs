//! Calls whose arguments or results differ between quinn and noq.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    Connection, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, ServerConfig, StreamId,
    Transmit,
};

pub(super) fn endpoint(config: EndpointConfig, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(Arc::new(config), server, true, None)
}

pub(super) fn set_ids(
    config: &mut EndpointConfig,
    factory: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(factory);
}

pub(super) fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    peer: SocketAddr,
    ecn: Option<EcnCodepoint>,
    datagram: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, peer, None, ecn, datagram, answer)
}

/// The number of bytes that the stream has accepted; none if it is blocked.
pub(super) fn write(connection: &mut Connection, stream: StreamId, chunk: Bytes) -> Option<usize> {
    let written = connection.send_stream(stream).write_chunks(&mut [chunk]).ok()?;
    Some(written.bytes)
}

pub(super) fn poll_transmit(connection: &mut Connection, now: Instant, datagram: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, 1, datagram)
}

/// The congestion window, and how often a reduction was undone: never.
#[cfg(not(feature = "seam"))]
pub(super) fn window(connection: &mut Connection) -> (u64, u64) {
    (connection.congestion_state().window(), 0)
}

/// The congestion window, and how often a reduction was undone.
#[cfg(feature = "seam")]
pub(super) fn window(connection: &mut Connection) -> (u64, u64) {
    let controller = connection.congestion_state();
    (controller.window(), controller.undos())
}
