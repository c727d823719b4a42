//! Scripts of packets and socket calls, in virtual time: what the peer sends, what the application does, and what the TCP
//! implementation under test must send in response. `docs/reference/scripts.md` describes the format.
//!
//! [`parse()`] reads a script, [`run()`] checks it against any [`Subject`]. [`Engine`] is reknit's TCP; `reknit-host` has the
//! live kernel.

pub mod differences;
mod engine;
mod notation;
mod parse;
mod run;
mod update;

use std::fmt;

use reknit_tcp::segment::{Flags, Segment};
use reknit_tcp::{Config, State};
use reknit_units::Duration;

pub use engine::Engine;
pub use notation::{Field, Fields, Pattern, brief, full, shifted};
pub use parse::parse;
pub use run::{Failure, RunReport, Subject, Value, run};
pub use update::update;

/// The connection's timestamp at the start of a script, in milliseconds.
pub const CLOCK_START_MS: u32 = 10_000;
/// The peer's window, unless a segment says otherwise.
pub const WINDOW: u16 = 60_000;

/// A script.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// The name of its file, without the extension.
    pub name: String,
    /// The comments before the first event: what it shows, and which sections of RFCs require it.
    pub about: Vec<String>,
    /// The variant that the engine uses; the kernel has only one TCP.
    pub variant: String,
    /// The connection's options.
    pub config: Config,
    /// The names of the options that the script sets.
    pub options: Vec<String>,
    /// The events in order of time.
    pub lines: Vec<Line>,
}

/// An event of a script.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// The line in the file, from 1.
    pub number: usize,
    /// Time since the start.
    pub at: Duration,
    /// What happens.
    pub event: Event,
}

/// What happens, or must have happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// `>`: the connection sends a segment.
    Sends(Pattern),
    /// `<`: the peer sends a segment.
    Gets(Segment),
    /// The application calls.
    Call(Call),
    /// A variable has this value.
    Check(Variable, Value),
    /// Nothing was sent.
    Nothing,
}

/// A call of the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Opens passively.
    Listen,
    /// Opens actively.
    Connect,
    /// Writes bytes.
    Write(u64),
    /// Reads bytes.
    Read(u64),
    /// Closes the sending direction.
    Close,
    /// Aborts.
    Abort,
}

impl std::fmt::Display for Call {
    /// As in scripts.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Call::Listen => f.write_str("listen"),
            Call::Connect => f.write_str("connect"),
            Call::Write(bytes) => write!(f, "write {bytes}"),
            Call::Read(bytes) => write!(f, "read {bytes}"),
            Call::Close => f.write_str("close"),
            Call::Abort => f.write_str("abort"),
        }
    }
}

/// The names of the calls.
pub const CALLS: [&str; 6] = ["listen", "connect", "write", "read", "close", "abort"];

/// What a script can check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variable {
    /// The state of the connection.
    State,
    /// Congestion window in bytes.
    Cwnd,
    /// Slow start threshold in bytes, or `none`.
    Ssthresh,
    /// Bytes estimated to be in the network.
    Pipe,
    /// Bytes sent and not cumulatively acknowledged.
    Flight,
    /// Smoothed round-trip time.
    Srtt,
    /// Retransmission timeout without back-off.
    Rto,
    /// The peer's window in bytes.
    SndWnd,
    /// The phase of loss recovery.
    Phase,
    /// Bytes of the stream that have arrived in order.
    Received,
    /// Bytes of the stream that the peer has acknowledged.
    Acknowledged,
    /// Bytes that can be read.
    Readable,
    /// Why the connection ended, or `no`.
    Closed,
    /// SACK was agreed on.
    Sack,
    /// Timestamps were agreed on.
    Timestamps,
    /// ECN was agreed on.
    Ecn,
}

impl Variable {
    /// All variables with their names.
    pub const ALL: [(&'static str, Variable); 16] = [
        ("state", Variable::State),
        ("cwnd", Variable::Cwnd),
        ("ssthresh", Variable::Ssthresh),
        ("pipe", Variable::Pipe),
        ("flight", Variable::Flight),
        ("srtt", Variable::Srtt),
        ("rto", Variable::Rto),
        ("snd_wnd", Variable::SndWnd),
        ("phase", Variable::Phase),
        ("received", Variable::Received),
        ("acknowledged", Variable::Acknowledged),
        ("readable", Variable::Readable),
        ("closed", Variable::Closed),
        ("sack", Variable::Sack),
        ("timestamps", Variable::Timestamps),
        ("ecn", Variable::Ecn),
    ];

    /// The name in scripts.
    pub fn name(self) -> &'static str {
        Variable::ALL.iter().find(|(_, variable)| *variable == self).map_or("", |(name, _)| name)
    }
}

/// The names of the states, as in RFC 9293.
pub const STATES: [(&str, State); 11] = [
    ("listen", State::Listen),
    ("syn-sent", State::SynSent),
    ("syn-received", State::SynReceived),
    ("established", State::Established),
    ("fin-wait-1", State::FinWait1),
    ("fin-wait-2", State::FinWait2),
    ("close-wait", State::CloseWait),
    ("closing", State::Closing),
    ("last-ack", State::LastAck),
    ("time-wait", State::TimeWait),
    ("closed", State::Closed),
];

/// Why a script is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for ScriptError {}

/// The letters of the flags, in the order in which they are written.
pub(crate) const FLAGS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('.', Flags::ACK),
    ('U', Flags::URG),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
];
