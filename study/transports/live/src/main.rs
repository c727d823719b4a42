//! A bulk transfer with quinn, over UDP sockets and in real time: `receive WINDOW` prints how many bytes its application has read, and
//! `send HOST SECONDS WINDOW` sends for this time. WINDOW is the receive window in bytes.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use rustls::DigitallySignedStruct;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const PORT: u16 = 4433;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", window] => receive(window.parse()?).await,
        ["send", host, seconds, window] => send(host, Duration::from_secs(seconds.parse()?), window.parse()?).await,
        _ => Err("usage: reknit-live-quinn receive WINDOW | send HOST SECONDS WINDOW".into()),
    }
}

/// As in the simulation.
fn transport(window: u32) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.receive_window(window.into()).stream_receive_window(window.into());
    config.send_window(1 << 40).max_idle_timeout(None);
    // A batch of datagrams would take the path back to back.
    config.enable_segmentation_offload(false);
    Arc::new(config)
}

/// A socket whose buffers do not overflow before the program reads them.
fn endpoint(port: u16, server: Option<ServerConfig>) -> Result<Endpoint> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
    Ok(Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))?)
}

/// Reads until the sender closes the connection.
async fn receive(window: u32) -> Result<()> {
    let certified = rcgen::generate_simple_self_signed(vec!["receiver".to_owned()])?;
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der())?;
    let mut server = ServerConfig::with_single_cert(vec![certified.cert.der().clone()], key)?;
    server.transport_config(transport(window));
    let endpoint = endpoint(PORT, Some(server))?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut received = 0u64;
    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await {
        received += chunk.bytes.len() as u64;
        // The reader of this file takes the last line: the sender's last packets may never arrive.
        println!("{received}");
    }
    Ok(())
}

/// Sends for this time, handshake included.
async fn send(host: &str, time: Duration, window: u32) -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "it runs in real time")]
    let started = Instant::now();
    let provider = Arc::new(ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustAll(provider)))
        .with_no_client_auth();
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    client.transport_config(transport(window));
    let address = (host, PORT).to_socket_addrs()?.find(SocketAddr::is_ipv4).ok_or("no address")?;
    let connection = endpoint(0, None)?.connect_with(client, address, "receiver")?.await?;
    let mut stream = connection.open_uni().await?;
    let chunk = vec![0; 1 << 16];
    let writing = async { while stream.write_all(&chunk).await.is_ok() {} };
    let _ = tokio::time::timeout(time.saturating_sub(started.elapsed()), writing).await;
    // What is in flight does not count: the process ends here, without closing the connection.
    let stats = connection.stats().path;
    eprintln!("{} packets, {} lost, {} loss events", stats.sent_packets, stats.lost_packets, stats.congestion_events);
    std::process::exit(0)
}

/// Accepts every certificate: the two programs talk over an emulated path.
#[derive(Debug)]
struct TrustAll(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
