//! A cipher that only adds a tag, and the handshake of [`crate::quic`], in noq's terms.

use std::any::Any;

use bytes::BytesMut;
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair, Keys,
    PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};

use crate::quic::{Handshake, TAG, open, seal};

/// Keys of all kinds except those of packets, without secrets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain;

/// The keys of packets after so many key updates (RFC 9001 §6). Others do not fit: a packet that is so late that its keys have been
/// discarded is dropped.
#[derive(Clone, Copy)]
struct Updated(u64);

impl HeaderKey for Plain {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        16
    }
}

impl PacketKey for Updated {
    fn encrypt(&self, _: PathId, number: u64, packet: &mut [u8], _: usize) {
        seal(self.0, number, packet);
    }

    fn decrypt(&self, _: PathId, number: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        payload.truncate(open(self.0, number, payload).ok_or(CryptoError)?);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HmacKey for Plain {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        signature.iter_mut().zip(data.iter().cycle()).for_each(|(to, from)| *to = *from);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for Plain {
    fn seal(&self, _: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.extend_from_slice(&[0; TAG]);
        Ok(())
    }

    fn open<'a>(&self, _: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let len = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&data[..len])
    }
}

fn packet_keys(updates: u64) -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(Updated(updates)), remote: Box::new(Updated(updates)) }
}

fn keys() -> Keys {
    Keys { header: KeyPair { local: Box::new(Plain), remote: Box::new(Plain) }, packet: packet_keys(0) }
}

impl ClientConfig for Plain {
    fn start_session(
        &self,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(PlainSession::new(Side::Client, parameters)))
    }
}

impl ServerConfig for Plain {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Box::new(PlainSession::new(Side::Server, parameters))
    }
}

struct PlainSession {
    side: Side,
    handshake: Handshake,
    updates: u64,
}

impl PlainSession {
    fn new(side: Side, parameters: &TransportParameters) -> PlainSession {
        let mut own = Vec::new();
        parameters.write(&mut own);
        PlainSession { side, handshake: Handshake::new(side.is_client(), own), updates: 0 }
    }
}

impl Session for PlainSession {
    fn initial_keys(&self, _: ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.handshake.is_going_on()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.handshake.read(bytes);
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut parameters) = self.handshake.peer() else { return Ok(None) };
        Ok(Some(TransportParameters::read(self.side, &mut parameters)?))
    }

    fn write_handshake(&mut self, buffer: &mut Vec<u8>) -> Option<Keys> {
        self.handshake.write(buffer).then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.updates += 1;
        Some(packet_keys(self.updates))
    }

    fn is_valid_retry(&self, _: ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
