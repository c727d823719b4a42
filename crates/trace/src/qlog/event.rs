//! The meaning of an event, in all dialects.

use reknit_units::{Duration, Instant};

use super::data::{Data, Frame};
use super::document::{Header, Raw};
use super::value::Scalar;

/// A space of packet numbers (RFC 9000 §12.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Space {
    Initial,
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Application,
}

/// A packet that was sent or received.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) path: u64,
    pub(super) space: Space,
    pub(super) number: u64,
    /// Bytes; 0 if the log does not say.
    pub(super) size: u64,
    /// True if it elicits an acknowledgment, so it can be declared lost.
    pub(super) is_eliciting: bool,
    pub(super) streams: Vec<StreamPart>,
}

/// A part of a stream, or a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamPart {
    /// None for a datagram.
    pub(super) stream: Option<u64>,
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// An ACK frame: its ranges, from the smallest number on.
#[derive(Debug)]
pub(super) struct Ack {
    /// The path of a `PATH_ACK` frame.
    pub(super) path: Option<u64>,
    pub(super) ranges: Vec<(u64, u64)>,
}

/// Why a packet was declared lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LossReason {
    PacketThreshold,
    TimeThreshold,
    ProbeTimeout,
    Unknown,
}

/// A packet by its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) path: u64,
    /// None if the log does not say.
    pub(super) space: Option<Space>,
    pub(super) number: u64,
}

#[derive(Debug)]
pub(super) enum Event {
    Sent(Packet),
    /// With its ACK frames.
    Received(Packet, Vec<Ack>),
    /// A packet arrived that the end took for a duplicate.
    Discarded(Named),
    /// A packet was sent or received whose number the log does not have.
    Unnumbered,
    Acked {
        path: u64,
        space: Space,
        numbers: Vec<u64>,
    },
    Lost(Named, LossReason),
    /// Packets were declared lost, but the log does not say which.
    LostSome(u64),
    Spurious(Named),
    Metrics {
        window: Option<u64>,
        smoothed_rtt: Option<f64>,
        latest_rtt: Option<f64>,
        pto_count: Option<u64>,
    },
    /// The packet threshold and the time threshold of the sender.
    Thresholds(Option<u64>, Option<f64>),
    /// The state of congestion control.
    State {
        is_recovery: bool,
    },
    ProbeTimeout,
    Other,
}

impl Event {
    /// # Errors
    /// What is wrong with the event, and what is allowed.
    pub(super) fn of(raw: &Raw) -> Result<Event, String> {
        let name = raw.name.text().unwrap_or_default();
        let short = name.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
        meaning(&short, raw).map_err(|why| format!("{name}: {why}"))
    }
}

/// `name`: without its category, in lower case.
fn meaning(name: &str, raw: &Raw) -> Result<Event, String> {
    let data = &raw.data;
    Ok(match name {
        "packet_sent" => packet(raw)?.map_or(without_number(data), Event::Sent),
        "packet_received" => received(raw)?,
        "packet_dropped" if data.trigger.is("duplicate") => named(raw)?.map_or(Event::Other, Event::Discarded),
        "packet_lost" | "packets_lost" => lost(raw)?,
        "spurious_loss" => named(raw)?.map_or(Event::Other, Event::Spurious),
        "packets_acked" | "packet_acked" => acked(raw)?,
        "metrics_updated" | "metric_update" | "congestion_metric_update" => metrics(data),
        // "recovery:parameters_set"; that of "transport" has no thresholds.
        "parameters_set" | "recovery_parameters_set" if !data.reordering_threshold.is_none() => {
            Event::Thresholds(data.reordering_threshold.whole().ok().flatten(), data.time_threshold.real())
        }
        "congestion_state_updated" | "congestion_state_update" if !data.new_state.is_none() => {
            Event::State { is_recovery: data.new_state.is("recovery") }
        }
        "loss_timer_updated" if data.event_type.is("expired") && !data.timer_type.is("ack") => Event::ProbeTimeout,
        _ => Event::Other,
    })
}

/// # Errors
/// If it is no whole number.
fn whole(name: &str, value: &Scalar) -> Result<Option<u64>, String> {
    value.whole().map_err(|found| format!("{name} is {found}; allowed is a whole number, also in quotation marks"))
}

/// Packets of types without numbers.
fn has_no_number(data: &Data) -> bool {
    ["retry", "version_negotiation", "stateless_reset"].iter().any(|kind| data.packet_type.is(kind))
}

fn space(packet_type: &Scalar, number_space: &Scalar) -> Option<Space> {
    let is = |names: [&str; 2]| names.iter().any(|name| packet_type.is(name) || number_space.is(name));
    if is(["initial", "initial"]) {
        Some(Space::Initial)
    } else if is(["handshake", "handshake"]) {
        Some(Space::Handshake)
    } else {
        let is_known = !packet_type.is_none() && !packet_type.is("unknown") || !number_space.is_none();
        is_known.then_some(Space::Application)
    }
}

fn without_number(data: &Data) -> Event {
    if has_no_number(data) { Event::Other } else { Event::Unnumbered }
}

fn received(raw: &Raw) -> Result<Event, String> {
    let Some(packet) = packet(raw)? else { return Ok(without_number(&raw.data)) };
    let frames = raw.data.frames.as_deref().unwrap_or_default();
    let acks = frames.iter().filter_map(|frame| ack(frame).transpose()).collect::<Result<_, _>>()?;
    Ok(Event::Received(packet, acks))
}

/// None if it has no number.
fn packet(raw: &Raw) -> Result<Option<Packet>, String> {
    let data = &raw.data;
    let Some(number) = whole("packet_number", &data.packet_number)?.filter(|_| !has_no_number(data)) else {
        return Ok(None);
    };
    let frames = data.frames.as_deref();
    let size = [&data.raw.length, &data.packet_size].into_iter().find_map(|size| size.whole().ok().flatten());
    Ok(Some(Packet {
        path: path(raw)?,
        space: space(&data.packet_type, &data.packet_number_space).unwrap_or(Space::Application),
        number,
        size: size.unwrap_or(0),
        is_eliciting: frames.is_none_or(|frames| frames.iter().any(is_eliciting)),
        streams: frames.unwrap_or_default().iter().filter_map(stream).collect(),
    }))
}

fn path(raw: &Raw) -> Result<u64, String> {
    let of_data = whole("path_id", &raw.data.path_id)?;
    // In an event, it may be a name of the addresses.
    Ok(of_data.or(raw.path.whole().ok().flatten()).unwrap_or(0))
}

/// RFC 9002 §2.
fn is_eliciting(frame: &Frame) -> bool {
    let names = ["ack", "ack_ecn", "ack_mp", "path_ack", "path_ack_ecn", "padding", "connection_close"];
    !names.iter().any(|name| frame.kind.is(name))
}

fn stream(frame: &Frame) -> Option<StreamPart> {
    let is_stream = frame.kind.is("stream");
    if !is_stream && !frame.kind.is("datagram") {
        return None;
    }
    let lengths = [&frame.length, &frame.raw.payload_length, &frame.raw.length];
    let len = lengths.into_iter().find_map(|len| len.whole().ok().flatten())?;
    let stream = frame.stream_id.whole().ok().flatten().filter(|_| is_stream);
    let offset = frame.offset.whole().ok().flatten().unwrap_or(0);
    Some(StreamPart { stream, offset, len })
}

fn ack(frame: &Frame) -> Result<Option<Ack>, String> {
    let is_of_path = ["ack_mp", "path_ack", "path_ack_ecn"].iter().any(|name| frame.kind.is(name));
    if !is_of_path && !frame.kind.is("ack") && !frame.kind.is("ack_ecn") {
        return Ok(None);
    }
    let mut ranges = frame.acked_ranges.iter().map(super::data::Range::ends).collect::<Result<Vec<_>, _>>()?;
    ranges.sort_unstable();
    let path = if is_of_path { whole("path_id", &frame.path_id)? } else { None };
    Ok(Some(Ack { path, ranges }))
}

fn named(raw: &Raw) -> Result<Option<Named>, String> {
    let data = &raw.data;
    let Some(number) = whole("packet_number", &data.packet_number)? else { return Ok(None) };
    Ok(Some(Named { path: path(raw)?, space: space(&data.packet_type, &data.packet_number_space), number }))
}

fn lost(raw: &Raw) -> Result<Event, String> {
    let data = &raw.data;
    if data.is_mtu_probe == Scalar::Flag(true) {
        return Ok(Event::Other);
    }
    let reasons = [
        ("reordering_threshold", LossReason::PacketThreshold),
        ("time_threshold", LossReason::TimeThreshold),
        ("pto_expired", LossReason::ProbeTimeout),
    ];
    let reason = reasons.into_iter().find(|(name, _)| data.trigger.is(name));
    let reason = reason.map_or(LossReason::Unknown, |(_, reason)| reason);
    Ok(match (named(raw)?, data.lost_packets.whole()) {
        (Some(named), _) => Event::Lost(named, reason),
        (None, Ok(Some(count))) => Event::LostSome(count),
        (None, _) => Event::LostSome(1),
    })
}

fn acked(raw: &Raw) -> Result<Event, String> {
    let data = &raw.data;
    let numbers = data.packet_numbers.iter().chain([&data.packet_number]);
    let numbers = numbers.filter_map(|number| whole("packet_numbers", number).transpose()).collect::<Result<_, _>>()?;
    let space = space(&data.packet_type, &data.packet_number_space).unwrap_or(Space::Application);
    Ok(Event::Acked { path: path(raw)?, space, numbers })
}

fn metrics(data: &Data) -> Event {
    Event::Metrics {
        #[expect(clippy::cast_sign_loss, reason = "the cast saturates")]
        window: data.congestion_window.real().map(|window| window as u64),
        smoothed_rtt: data.smoothed_rtt.real(),
        latest_rtt: data.latest_rtt.real(),
        pto_count: data.pto_count.whole().ok().flatten(),
    }
}

/// The times of a trace, from its first event on.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    first: Option<f64>,
    now: f64,
    last: Instant,
    /// Events that are earlier than the one before.
    pub(super) backwards: u64,
}

impl Timeline {
    /// # Errors
    /// If it has no time, or one in an unknown unit.
    pub(super) fn at(&mut self, header: &Header, raw: &Raw) -> Result<Instant, String> {
        let Some(time) = raw.time.real() else {
            return Err(format!("its time is {}; allowed is a number", raw.time));
        };
        let nanos = match header.time_units.text() {
            None | Some("ms") => 1e6,
            Some("us") => 1e3,
            Some("ns") => 1.0,
            Some("s") => 1e9,
            Some(other) => return Err(format!("time_units of its trace is \"{other}\"; allowed are ms, us, ns and s")),
        };
        let is_delta = ["delta", "relative_to_previous_event"].iter().any(|name| header.time_format.is(name));
        self.now = if raw.is_delta || is_delta { self.now + time } else { time };
        let since = (self.now - *self.first.get_or_insert(self.now)) * nanos;
        #[expect(
            clippy::cast_sign_loss,
            reason = "the cast saturates; what comes before the first event comes with it"
        )]
        let at = Instant::from_nanos(since.round() as u64);
        self.backwards += u64::from(at < self.last);
        self.last = at;
        Ok(at)
    }

    /// From the first event on.
    pub(super) fn duration(&self) -> Duration {
        self.last.since(Instant::ZERO)
    }
}
