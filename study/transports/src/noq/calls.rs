//! Calls whose arguments or results differ between quinn and noq.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use noq_proto::{
    Connection, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, FourTuple, PathId,
    ServerConfig, StreamId, Transmit,
};

pub(super) fn endpoint(config: EndpointConfig, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(Arc::new(config), server, true)
}

pub(super) fn set_ids(
    config: &mut EndpointConfig,
    factory: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(Arc::new(factory));
}

pub(super) fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    peer: SocketAddr,
    ecn: Option<EcnCodepoint>,
    datagram: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::new(peer, None), ecn, datagram, answer)
}

/// The number of bytes that the stream has accepted; none if it is blocked.
pub(super) fn write(connection: &mut Connection, stream: StreamId, chunk: Bytes) -> Option<usize> {
    connection.send_stream(stream).write_chunks(&mut &mut [chunk][..]).ok()
}

pub(super) fn poll_transmit(connection: &mut Connection, now: Instant, datagram: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, NonZeroUsize::MIN, datagram)
}

/// The congestion window, and how often a reduction was undone.
pub(super) fn window(connection: &mut Connection) -> (u64, u64) {
    let stats = connection.path_stats(PathId::ZERO).unwrap_or_default();
    (stats.cwnd, stats.spurious_congestion_events)
}
