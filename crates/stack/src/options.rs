//! Options of a stack, which it keeps, and of a listener or a socket, which belong to the application and are read as it is
//! opened: the stack keeps what it needs of them in [`Prepared`], made once for consecutive sockets with the same options.

use std::net::IpAddr;
use std::sync::Arc;

use reknit_tcp::Config;
use reknit_tcp::config::RttSamples;
use reknit_units::{Bytes, Duration, Segments};
use reknit_variants::Composition;
use reknit_wire::HOP_LIMIT;

/// Bytes of an IPv4 header with a TCP header, both without options.
const HEADERS_V4: u16 = 40;
/// Bytes of an IPv6 header with a TCP header without options.
const HEADERS_V6: u16 = 60;
/// The least MTU of IPv6 (RFC 8200 §5).
pub(crate) const MIN_MTU_V6: u16 = 1280;
/// The smallest MTU that an ICMP message over IPv4 can impose, as in Linux. With a smaller one (RFC 791 allows 68), a forged
/// message could do more harm than any real path needs.
pub(crate) const MIN_MTU_V4: u16 = 552;

/// Options of the whole stack.
#[derive(Clone, Debug)]
pub struct Options {
    /// The addresses of this host. Packets to others are ignored.
    pub addresses: Vec<IpAddr>,
    /// Forwarding: the most connections, to any address and port without a listener, that wait for the program to take or refuse
    /// them ([`crate::Stack::next_request`]). Zero turns forwarding off: packets to other addresses are ignored.
    pub max_requests: usize,
    /// The largest packet that the interface carries.
    pub mtu: u16,
    /// The interface cuts packets of up to 64 KiB into segments (TSO), so that consecutive segments cost less. It matters only
    /// for the shares of time of connections.
    pub offload: bool,
    /// The most RSTs per second to segments that belong to nothing.
    pub resets_per_second: u32,
    /// The most ICMP errors per second, and the most echo replies.
    pub icmp_per_second: u32,
    /// The most sockets: connections, half-open ones and those in TIME-WAIT. Beyond it, those in TIME-WAIT, and closed ones that
    /// wait in FIN-WAIT-2, give way; without any, a SYN is ignored, and opening fails.
    pub max_sockets: usize,
    /// The most sockets that were closed and still send. For a further one, the one that has waited longest for its peer is reset.
    pub max_orphans: usize,
    /// How long a closed socket goes on while its peer answers, but acknowledges nothing new: its window is closed, for instance.
    pub orphan_timeout: Duration,
    /// The most memory for the buffers of all connections together, and for the records of what they have in flight. When three
    /// quarters are in use, no connection gets more than its share, and for those that begin to use memory, others end that have
    /// waited long for their peers. When all is in use, none gets more than 2 KiB in each direction, and sockets that hold more
    /// are reset when they are closed, or have waited for 10 s (RFC 6429 §4).
    pub max_memory: Bytes,
    /// Retry with smaller segments when full-sized ones are lost again and again and smaller ones may pass: the path may
    /// drop ICMP (RFC 4821, RFC 8899 §4.3). Larger ones are tried again later.
    pub detect_black_holes: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            addresses: Vec::new(),
            max_requests: 0,
            mtu: 1500,
            offload: false,
            resets_per_second: 1000,
            icmp_per_second: 1000,
            max_sockets: 1 << 20,
            max_orphans: 1 << 14,
            orphan_timeout: Duration::from_secs(200),
            max_memory: Bytes(512 << 20),
            detect_black_holes: true,
        }
    }
}

/// Options of a listener.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Options of the connections.
    pub socket: SocketOptions,
    /// The most established connections that wait to be accepted. While there are as many, further ones are ignored.
    pub backlog: usize,
    /// The most half-open connections. A further SYN is answered with a cookie (RFC 4987 §3.6), or ignored.
    pub syn_backlog: usize,
    /// Whether cookies are used.
    pub syn_cookies: bool,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions { socket: SocketOptions::default(), backlog: 1024, syn_backlog: 1024, syn_cookies: true }
    }
}

/// What happens to data that is not acknowledged yet when a socket is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Linger {
    /// It is still sent, for as long as the peer answers.
    #[default]
    Send,
    /// It is still sent, but after this time the connection is aborted. Zero aborts at once.
    AtMost(Duration),
}

/// Options of a socket.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// Options of the engine. `mss` is limited to what the interface carries; `receive_buffer` is the most to which the
    /// window grows.
    pub config: Config,
    /// The algorithms.
    pub variant: Arc<Composition>,
    /// The receive window at the beginning. It grows with what the application reads in a round trip.
    pub receive_window: Bytes,
    /// The most bytes that may be written ahead at the beginning.
    pub send_buffer: Bytes,
    /// The most to which that grows: twice the congestion window.
    pub largest_send_buffer: Bytes,
    /// TTL or hop limit of packets that are sent.
    pub hop_limit: u8,
    /// Arriving segments with a smaller TTL or hop limit are ignored (RFC 5082). Zero accepts all.
    pub min_hop_limit: u8,
    /// What `close` does with data that is not acknowledged.
    pub linger: Linger,
}

impl Default for SocketOptions {
    /// The variant `reknit`, and times as in today's systems rather than those of RFC 6298.
    fn default() -> SocketOptions {
        let variant = reknit_variants::find("reknit").map(|variant| (variant.compose)()).unwrap_or_default();
        SocketOptions::of(Arc::new(variant))
    }
}

impl SocketOptions {
    /// The defaults with another variant.
    pub fn of(variant: Arc<Composition>) -> SocketOptions {
        let config = Config {
            mss: u16::MAX - HEADERS_V6,
            max_burst: Some(Segments(128)), // one ACK may acknowledge 64 KiB of segments that were coalesced (GRO)
            rtt_samples: RttSamples::PerAck,
            ack_delay: Duration::from_millis(40),
            min_rto: Duration::from_millis(200),
            half_open_timeout: Duration::from_secs(30),
            fin_wait_2_timeout: Duration::from_secs(60),
            ..Config::default()
        };
        SocketOptions {
            config,
            variant,
            receive_window: Bytes(128 << 10),
            send_buffer: Bytes(64 << 10),
            largest_send_buffer: Bytes(4 << 20),
            hop_limit: HOP_LIMIT,
            min_hop_limit: 0,
            linger: Linger::Send,
        }
    }

    /// True if all options but the variant are the same.
    fn is_same(&self, other: &SocketOptions) -> bool {
        let numbers = |options: &SocketOptions| {
            let buffers = (options.receive_window, options.send_buffer, options.largest_send_buffer);
            (buffers, options.hop_limit, options.min_hop_limit, options.linger)
        };
        numbers(self) == numbers(other) && self.config == other.config
    }

    /// The engine's options for an interface with this MTU: those of the variant, and a segment size that fits.
    fn configure(&self, mtu: u16, is_v6: bool) -> Arc<Config> {
        let mut config = self.variant.configure(self.config.clone());
        config.mss = config.mss.min(mss_for(mtu, is_v6));
        config.min_mss = config.min_mss.min(config.mss);
        Arc::new(config)
    }
}

/// The packet of a segment of `mss` bytes, options included.
pub(crate) fn mtu_for(mss: u16, is_v6: bool) -> u16 {
    mss.saturating_add(if is_v6 { HEADERS_V6 } else { HEADERS_V4 })
}

/// The segment size, options included, that fits a packet of `mtu` bytes.
pub(crate) fn mss_for(mtu: u16, is_v6: bool) -> u16 {
    mtu.saturating_sub(if is_v6 { HEADERS_V6 } else { HEADERS_V4 }).max(64)
}

/// Options that are ready for connections of both families.
#[derive(Debug)]
pub(crate) struct Prepared {
    options: SocketOptions,
    config: [Arc<Config>; 2],
}

impl Prepared {
    pub(crate) fn new(options: &SocketOptions, mtu: u16) -> Arc<Prepared> {
        let config = [false, true].map(|is_v6| options.configure(mtu, is_v6));
        Arc::new(Prepared { options: options.clone(), config })
    }

    /// True if these are `options`, prepared.
    pub(crate) fn is_of(&self, options: &SocketOptions) -> bool {
        Arc::ptr_eq(&self.options.variant, &options.variant) && self.options.is_same(options)
    }

    pub(crate) fn options(&self) -> &SocketOptions {
        &self.options
    }

    pub(crate) fn config(&self, is_v6: bool) -> &Arc<Config> {
        &self.config[usize::from(is_v6)]
    }
}
