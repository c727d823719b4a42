//! reknit's engine as the TCP under test, in virtual time.

use std::collections::VecDeque;
use std::sync::Arc;

use reknit_tcp::facts::Phase;
use reknit_tcp::segment::{Flags, Segment};
use reknit_tcp::{CloseReason, Config, Connection, Identity, Output, SeqNum, State, reset_for};
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::Composition;

use crate::notation::shifted;
use crate::run::{Subject, Value};
use crate::{CLOCK_START_MS, Call, STATES, Script, Variable};

/// The initial sequence numbers of both ends: the numbers wrap in every script.
const ISNS: (SeqNum, SeqNum) = (SeqNum(u32::MAX - 700), SeqNum(u32::MAX - 70));
/// Time zero of scripts.
const START: Instant = Instant::from_nanos(CLOCK_START_MS as u64 * 1_000_000);

/// The engine.
#[derive(Debug)]
pub struct Engine {
    composition: Composition,
    config: Arc<Config>,
    connection: Option<Connection>,
    now: Instant,
    sent: VecDeque<(Instant, Segment)>,
}

impl Engine {
    /// The engine with the variant and the options of `script`.
    ///
    /// # Errors
    /// If there is no such variant.
    pub fn new(script: &Script) -> Result<Engine, String> {
        let variant = reknit_variants::find(&script.variant).map_err(|error| error.to_string())?;
        let composition = (variant.compose)();
        let config = Arc::new(composition.configure(script.config.clone()));
        Ok(Engine { composition, config, connection: None, now: START, sent: VecDeque::new() })
    }

    /// Numbers of a host without a connection are those of the segment that it answers.
    fn isn(&self) -> u32 {
        self.connection.as_ref().map_or(0, |_| ISNS.0.0)
    }

    fn pump(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        while let Output::Send(segment) = connection.poll(self.now) {
            self.sent.push_back((self.now, segment));
        }
    }

    fn open(&mut self, how: fn(Instant, Arc<Config>, reknit_tcp::seams::Plugins, Identity) -> Connection) {
        let identity = Identity { isn: ISNS.0, timestamp_offset: 0 };
        self.connection = Some(how(self.now, self.config.clone(), self.composition.build(), identity));
    }

    fn check(&self) -> Result<(), String> {
        self.connection.as_ref().map_or(Ok(()), |connection| {
            connection.check().map_err(|error| format!("an invariant of the engine is violated: {error}"))
        })
    }
}

impl Subject for Engine {
    fn next_sent(&mut self, until: Duration) -> Result<Option<(Duration, Segment)>, String> {
        let until = START + until;
        self.pump();
        while self.sent.is_empty()
            && let Some(connection) = &mut self.connection
            && connection.deadline() <= until
        {
            self.now = self.now.max(connection.deadline());
            connection.on_timer(self.now);
            self.pump();
            self.check()?;
        }
        if self.sent.is_empty() {
            self.now = self.now.max(until);
        }
        let isn = self.isn();
        let next = self.sent.pop_front();
        let relative = |segment: Segment| shifted(&segment, isn.wrapping_neg(), ISNS.1.0.wrapping_neg());
        Ok(next.map(|(at, segment)| (at.since(START), relative(segment))))
    }

    fn deliver(&mut self, segment: &Segment) -> Result<(), String> {
        let segment = shifted(segment, ISNS.1.0, self.isn());
        match &mut self.connection {
            Some(connection) => _ = connection.on_segment(self.now, &segment),
            // What a host does without any connection.
            None if segment.flags.has(Flags::RST) => {}
            None => self.sent.push_back((self.now, reset_for(&segment))),
        }
        self.pump();
        self.check()
    }

    fn call(&mut self, call: Call) -> Result<(), String> {
        let now = self.now;
        match (call, &mut self.connection) {
            (Call::Listen, None) => self.open(Connection::listen),
            (Call::Connect, None) => self.open(Connection::connect),
            (Call::Listen | Call::Connect, Some(_)) => return Err("the connection is already open".to_owned()),
            (_, None) => return Err("there is no connection: `connect` or `listen` comes first".to_owned()),
            (Call::Write(n), Some(connection)) => connection.write(Bytes(n)),
            (Call::Read(n), Some(connection)) => connection.read(now, Bytes(n)),
            (Call::Close, Some(connection)) => connection.close(),
            (Call::Abort, Some(connection)) => connection.abort(now),
        }
        self.pump();
        self.check()
    }

    fn value(&mut self, variable: Variable, _expected: Value) -> Result<Option<Value>, String> {
        let Some(connection) = &self.connection else {
            return Ok((variable == Variable::State).then_some(Value::Word("closed")));
        };
        let info = connection.info(self.now);
        let switch = |on: bool| Value::Word(if on { "on" } else { "off" });
        Ok(Some(match variable {
            Variable::State => Value::Word(state_name(info.state)),
            Variable::Cwnd => Value::Number(info.cwnd.0),
            Variable::Ssthresh => info.ssthresh.map_or(Value::Word("none"), |bytes| Value::Number(bytes.0)),
            Variable::Pipe => Value::Number(info.pipe.0),
            Variable::Flight => Value::Number(info.flight_size.0),
            Variable::Srtt => info.srtt.map_or(Value::Word("none"), Value::Time),
            Variable::Rto => info.rto.map_or(Value::Word("none"), Value::Time),
            Variable::SndWnd => Value::Number(info.snd_wnd.0),
            Variable::Phase => Value::Word(phase_name(info.phase)),
            Variable::Received => Value::Number(connection.received()),
            Variable::Acknowledged => Value::Number(info.acknowledged),
            Variable::Readable => Value::Number(connection.readable().0),
            Variable::Closed => Value::Word(reason_name(connection.close_reason())),
            Variable::Sack => switch(info.sack),
            Variable::Timestamps => switch(info.timestamps),
            Variable::Ecn => switch(info.ecn),
        }))
    }

    fn tolerance(&self, _waited: Duration) -> Duration {
        Duration::ZERO
    }
}

fn state_name(state: State) -> &'static str {
    STATES.iter().find(|(_, known)| *known == state).map_or("closed", |(name, _)| name)
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Open => "open",
        Phase::Disorder => "disorder",
        Phase::Recovery => "recovery",
        Phase::Loss => "loss",
    }
}

fn reason_name(reason: Option<CloseReason>) -> &'static str {
    match reason {
        None => "no",
        Some(CloseReason::Finished) => "finished",
        Some(CloseReason::Refused) => "refused",
        Some(CloseReason::Reset) => "reset",
        Some(CloseReason::TimedOut) => "timed-out",
        Some(CloseReason::Aborted) => "aborted",
        Some(CloseReason::OptimisticAck) => "optimistic-ack",
    }
}
