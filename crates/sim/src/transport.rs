//! Transports other than this project's own: what one must provide to run in the simulator.
//!
//! An [`Endpoint`] is one end of a connection without I/O: packets go in, packets come out, and it says when it must be woken.
//! The simulator gives it the time, so it runs on the same paths, with the same seeds and the same results as a variant. It
//! transfers data in one direction.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use reknit_units::{Bytes, Instant};

/// One end of a connection.
pub trait Endpoint: Debug + Send {
    /// The application writes this many bytes, then closes the stream. Called once; more than can ever be sent means that it
    /// always has data.
    fn write(&mut self, now: Instant, len: u64);

    /// A packet has arrived. The application reads at once what is in order.
    fn handle(&mut self, now: Instant, packet: &[u8]);

    /// The deadline has come.
    fn on_deadline(&mut self, now: Instant);

    /// The next packet to send; none if there is nothing to send now.
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit>;

    /// When [`Endpoint::on_deadline`] must be called; [`Instant::NEVER`] if there is no deadline. Asked whenever there is nothing
    /// more to send.
    fn deadline(&mut self, now: Instant) -> Instant;

    /// Bytes that the application has read.
    fn received(&self) -> u64;

    /// What it has counted.
    fn counters(&self) -> Counters;
}

/// A packet to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// What the other end gets.
    pub packet: Vec<u8>,
    /// Bytes on the wire, all headers from IP on included.
    pub size: Bytes,
    /// The bytes of the stream that it carries.
    pub data: Vec<Range<u64>>,
}

/// What a sender has counted since the connection was opened. None for what it does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Reductions of the congestion window.
    pub cuts: Option<u64>,
    /// Reductions that it undid.
    pub undos: Option<u64>,
    /// Expiries of the retransmission timer.
    pub timeouts: Option<u64>,
}

/// The two ends of a new connection.
#[derive(Debug)]
pub struct Ends {
    /// The end that sends data; it opens the connection.
    pub sender: Box<dyn Endpoint>,
    /// The end that receives data.
    pub receiver: Box<dyn Endpoint>,
}

/// What a new connection needs to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// The time.
    pub now: Instant,
    /// Seed of all its random decisions.
    pub seed: u64,
    /// The receive buffer in the path's TCP options.
    pub receive_buffer: Bytes,
}

/// A transport that can be compared with variants.
pub trait Transport: Debug + Send + Sync {
    /// Its name in tables.
    fn name(&self) -> &str;

    /// What it is, in one sentence, with the versions that its results depend on.
    fn about(&self) -> &str;

    /// Opens a connection.
    fn open(&self, opening: &Opening) -> Ends;

    /// True if an end processes all packets that arrive at the same time before it answers, as programs do that read from a
    /// socket or a device.
    fn reads_in_batches(&self) -> bool {
        true
    }
}

/// The transports that a program offers beside the variants.
#[derive(Clone, Debug, Default)]
pub struct Transports(Vec<Arc<dyn Transport>>);

impl Transports {
    /// These transports.
    pub fn new(transports: Vec<Arc<dyn Transport>>) -> Transports {
        Transports(transports)
    }

    /// The transport with this name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Transport>> {
        self.iter().find(|transport| transport.name() == name)
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<dyn Transport>> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Transports {
    type Item = &'a Arc<dyn Transport>;
    type IntoIter = std::slice::Iter<'a, Arc<dyn Transport>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Equal names and descriptions give equal results.
impl PartialEq for Transports {
    fn eq(&self, other: &Transports) -> bool {
        let described = |transports: &Transports| {
            transports.iter().map(|one| (one.name().to_owned(), one.about().to_owned())).collect::<Vec<_>>()
        };
        described(self) == described(other)
    }
}
