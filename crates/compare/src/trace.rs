//! One run, packet by packet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use reknit_config::InputError;
use reknit_sim::{Datagram, EndSnapshot, Role, Scenario, TraceEvent, Tracer, run_unless};
use reknit_tcp::SeqNum;
use reknit_tcp::scoreboard::SendReason;
use reknit_tcp::segment::{Flags, SackBlock};
use reknit_units::Instant;
use schemars::JsonSchema;
use serde::Serialize;

use crate::simulate::{ShownColumns, phase};
use crate::{Error, SimulateOptions};

/// The most events of a trace or of a qlog.
pub(crate) const MAX_EVENTS: usize = 2_000_000;

/// The packets that were sent, delivered and lost in a run: columns of equal length, in the order of events. Sequence
/// numbers are relative to the initial ones: the SYN is 0, the first byte of data 1.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Packets {
    /// Time, seconds.
    pub time_s: Vec<f64>,
    /// The connection, from 0.
    pub flow: Vec<u32>,
    /// `send`, `deliver` or `lost`.
    pub event: Vec<&'static str>,
    /// The end: `sender` or `receiver` of data. For a lost packet, the end that sent it.
    pub end: Vec<&'static str>,
    /// `forward`, the direction of data, or `reverse`.
    pub direction: Vec<&'static str>,
    /// The packet's number in the run, from 0; the same at both ends.
    pub packet: Vec<u64>,
    /// True for a copy that the network made.
    pub copy: Vec<bool>,
    /// Sequence number.
    pub seq_bytes: Vec<u64>,
    /// Acknowledgment number; none without an ACK flag.
    pub ack_bytes: Vec<Option<u64>>,
    /// Bytes of payload.
    pub length_bytes: Vec<u16>,
    /// As written by tcpdump: `S`, `F`, `R`, `P`, and `.` for ACK.
    pub flags: Vec<String>,
    /// SACK blocks without the DSACK, in the order of the option, as `left-right`; the right edge is one past the last
    /// byte.
    pub sack: Vec<Vec<String>>,
    /// The DSACK block.
    pub dsack: Vec<Option<String>>,
    /// The number of the data segment, in the order of first transmission by its end, from 1; none without data or FIN.
    pub segment: Vec<Option<u32>>,
    /// The number of the transmission, from 1.
    pub transmission: Vec<Option<u16>>,
    /// The cause: `new`, `limited_transmit`, `fast_retransmit`, `timeout`, `probe`, `rescue` or `window_probe`.
    pub cause: Vec<Option<&'static str>>,
    /// The sender's variables after it has processed the event; none at the receiver. Congestion window, bytes.
    pub cwnd_bytes: Vec<Option<u64>>,
    /// Slow start threshold, bytes; none before the first loss.
    pub ssthresh_bytes: Vec<Option<u64>>,
    /// Duplicate threshold, segments.
    pub dup_thresh_segments: Vec<Option<u32>>,
    /// `open`, `disorder`, `recovery` or `loss`.
    pub phase: Vec<Option<&'static str>>,
    /// Retransmission timeout without back-off, ms.
    pub rto_ms: Vec<Option<f64>>,
    /// The numbers that algorithms at this end show: a column for each.
    #[serde(flatten)]
    pub shown: ShownColumns,
}

/// A run, packet by packet.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PacketTrace {
    /// Warnings about combinations in the user's files, and about the path.
    pub warnings: Vec<String>,
    /// All events, from the beginning.
    pub packets: Packets,
}

/// Runs it and records every packet, at most two million events; `sample_every` is ignored. None if `stop` became true.
///
/// # Errors
/// If an option is invalid, or there are more events.
pub fn trace(options: &SimulateOptions, stop: &AtomicBool) -> Result<Option<PacketTrace>, Error> {
    let (setup, variant) = options.look_up()?;
    let scenario = setup.scenario(&variant, options.seed);
    let is_full = AtomicBool::new(false);
    let recorder = Recorder::new(stop, &is_full);
    let outcome = record(&scenario, recorder, (stop, &is_full), "a trace; trace a shorter run")?;
    let Some(recorder) = outcome else { return Ok(None) };
    let mut packets = recorder.packets;
    packets.shown.complete(packets.time_s.len());
    Ok(Some(PacketTrace { warnings: setup.warnings(), packets }))
}

/// Runs it with a tracer, which sets both flags when it has more than [`MAX_EVENTS`], the limit of `what`. None if `stop` became
/// true without that.
pub(crate) fn record<T: Tracer>(
    scenario: &Scenario,
    tracer: T,
    (stop, is_full): (&AtomicBool, &AtomicBool),
    what: &str,
) -> Result<Option<T>, Error> {
    match run_unless(scenario, tracer, stop) {
        Ok((_, tracer)) => Ok(Some(tracer)),
        Err(_) if is_full.load(Ordering::Relaxed) => {
            let message = format!("would record more than {MAX_EVENTS} events, the limit of {what}");
            Err(InputError::of_argument("duration", scenario.duration, message).into())
        }
        Err(_) => Ok(None),
    }
}

/// Converts the sequence numbers of one end, which wrap, to offsets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unwrapped {
    pub(crate) isn: SeqNum,
    highest: u64,
}

impl Unwrapped {
    pub(crate) fn offset(&mut self, seq: SeqNum) -> u64 {
        let ahead = seq.0.wrapping_sub(self.isn.0.wrapping_add(self.highest as u32)).cast_signed();
        let offset = self.highest.saturating_add_signed(i64::from(ahead));
        self.highest = self.highest.max(offset);
        offset
    }
}

#[derive(Debug)]
struct Recorder<'a> {
    /// Ends the run.
    stop: &'a AtomicBool,
    /// There were more events than the limit.
    is_full: &'a AtomicBool,
    packets: Packets,
    /// For each connection, the sequence numbers of the sender and of the receiver.
    numbers: BTreeMap<u32, [Unwrapped; 2]>,
    /// Rows at an end whose variables are not filled in yet.
    open: Vec<usize>,
}

impl<'a> Recorder<'a> {
    fn new(stop: &'a AtomicBool, is_full: &'a AtomicBool) -> Recorder<'a> {
        Recorder { stop, is_full, packets: Packets::default(), numbers: BTreeMap::new(), open: Vec::new() }
    }

    fn note_numbers(&mut self, datagram: &Datagram) {
        let segment = &datagram.segment;
        let [mut own, mut others] = self.numbers_of(datagram);
        self.packets.seq_bytes.push(own.offset(segment.seq));
        let ack = segment.flags.has(Flags::ACK).then(|| others.offset(segment.ack));
        self.packets.ack_bytes.push(ack);
        let mut text = |block: &SackBlock| format!("{}-{}", others.offset(block.left), others.offset(block.right));
        let blocks = segment.options.sack.as_slice();
        let has_dsack = is_dsack(segment.ack, blocks);
        self.packets.dsack.push(blocks.first().filter(|_| has_dsack).map(&mut text));
        self.packets.sack.push(blocks[usize::from(has_dsack)..].iter().map(&mut text).collect());
        let numbers = match datagram.from {
            Role::Sender => [own, others],
            Role::Receiver => [others, own],
        };
        self.numbers.insert(datagram.flow, numbers);
    }

    /// The sequence numbers of the end that sent `datagram`, and those of the other end.
    fn numbers_of(&mut self, datagram: &Datagram) -> [Unwrapped; 2] {
        let numbers = self.numbers.entry(datagram.flow).or_default();
        let own = usize::from(datagram.from == Role::Receiver);
        if datagram.segment.flags.has(Flags::SYN) {
            numbers[own].isn = datagram.segment.seq;
        }
        [numbers[own], numbers[1 - own]]
    }

    fn note_state(&mut self) {
        let packets = &mut self.packets;
        packets.cwnd_bytes.push(None);
        packets.ssthresh_bytes.push(None);
        packets.dup_thresh_segments.push(None);
        packets.phase.push(None);
        packets.rto_ms.push(None);
    }
}

/// True if the first block reports a duplicate: it is below the cumulative acknowledgment, or inside the second block
/// (RFC 2883 §4).
fn is_dsack(ack: SeqNum, blocks: &[SackBlock]) -> bool {
    let reaches = |from: SeqNum, to: SeqNum| !to.before(from);
    match blocks {
        [first, ..] if reaches(first.right, ack) => true,
        [first, second, ..] => reaches(second.left, first.left) && reaches(first.right, second.right),
        _ => false,
    }
}

fn name(cause: SendReason) -> &'static str {
    match cause {
        SendReason::New => "new",
        SendReason::LimitedTransmit => "limited_transmit",
        SendReason::FastRetransmit => "fast_retransmit",
        SendReason::Timeout => "timeout",
        SendReason::Probe => "probe",
        SendReason::Rescue => "rescue",
        SendReason::WindowProbe => "window_probe",
    }
}

impl Tracer for Recorder<'_> {
    const WATCHES: bool = true;

    fn on_packet(&mut self, now: Instant, event: TraceEvent, datagram: &Datagram) {
        if self.packets.time_s.len() == MAX_EVENTS {
            self.is_full.store(true, Ordering::Relaxed);
            self.stop.store(true, Ordering::Relaxed);
            return;
        }
        let (event, at) = match event {
            TraceEvent::Sent => ("send", datagram.from),
            TraceEvent::Delivered => ("deliver", datagram.from.other()),
            TraceEvent::Lost => ("lost", datagram.from),
        };
        if event != "lost" {
            self.open.push(self.packets.time_s.len());
        }
        self.note_numbers(datagram);
        self.note_state();
        let carried = datagram.transmission;
        let packets = &mut self.packets;
        packets.time_s.push(now.as_secs_f64());
        packets.flow.push(datagram.flow);
        packets.event.push(event);
        packets.end.push(if at == Role::Sender { "sender" } else { "receiver" });
        packets.direction.push(if datagram.from == Role::Sender { "forward" } else { "reverse" });
        packets.packet.push(datagram.serial);
        packets.copy.push(datagram.copy);
        packets.length_bytes.push(datagram.segment.len);
        packets.flags.push(format!("{:?}", datagram.segment.flags));
        packets.segment.push(carried.map(|carried| carried.segment));
        packets.transmission.push(carried.map(|carried| carried.number));
        packets.cause.push(carried.map(|carried| name(carried.cause)));
    }

    fn on_snapshot(&mut self, now: Instant, look: &EndSnapshot<'_>) {
        let packets = &mut self.packets;
        let end = if look.end == Role::Sender { "sender" } else { "receiver" };
        let info = look.connection.info(now);
        let is_here = |row: &usize| packets.flow[*row] == look.flow && packets.end[*row] == end;
        let rows: Vec<usize> = self.open.drain(..).filter(is_here).collect();
        for row in rows {
            look.show(&mut |name, value| packets.shown.set(row, name, value));
            if look.end == Role::Receiver {
                continue;
            }
            packets.cwnd_bytes[row] = Some(info.cwnd.0);
            packets.ssthresh_bytes[row] = info.ssthresh.map(|ssthresh| ssthresh.0);
            packets.dup_thresh_segments[row] = Some(info.dup_thresh.0);
            packets.phase[row] = Some(phase(info.phase));
            packets.rto_ms[row] = info.rto.map(|rto| rto.as_secs_f64() * 1e3);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use reknit_sim::Plan;

    use super::*;
    use crate::ScenarioOptions;

    /// The third segment is 30 ms late.
    pub(crate) const PLAN: &str = "duration = \"2 s\"\nphases = \"fixed\"\n[[flows]]\nworkload = { kind = \"transfer\", size = \"38400 B\" }\n\
        [path]\ndescription = \"test\"\n[path.tcp]\nmss = 960\ntimestamps = false\nack_every = 1\n\
        initial_window = 8\nmax_window = 8\n\
        [[path.forward]]\nkind = \"script\"\nrules = [{ segment = 3, action = \"delay\", by = \"30 ms\" }]\n\
        [[path.forward]]\nkind = \"link\"\ndelay = \"50 ms\"\n[[path.reverse]]\nkind = \"link\"\ndelay = \"50 ms\"\n";

    fn recorded() -> Packets {
        let scenario = ScenarioOptions::of(Plan::parse("s.toml", PLAN).unwrap());
        let options = SimulateOptions { scenario, variant: "dsack-r".to_owned(), seed: 1, sample_every: None };
        trace(&options, &AtomicBool::new(false)).unwrap().unwrap().packets
    }

    #[test]
    fn a_delayed_segment_can_be_followed() {
        let p = recorded();
        let rows = |event: &str, segment: u32| -> Vec<usize> {
            (0..p.time_s.len()).filter(|i| p.event[*i] == event && p.segment[*i] == Some(segment)).collect()
        };
        let sent = rows("send", 3);
        assert_eq!(
            sent.iter().map(|i| (p.time_s[*i], p.cause[*i])).collect::<Vec<_>>(),
            [(0.1, Some("new")), (0.2, Some("fast_retransmit")),]
        );
        assert!(sent.iter().all(|i| p.seq_bytes[*i] == 1 + 2 * 960 && p.length_bytes[*i] == 960));
        // The original arrives 30 ms late, and the spurious copy causes a DSACK.
        let arrived: Vec<f64> = rows("deliver", 3).iter().map(|i| p.time_s[*i]).collect();
        assert_eq!(arrived, [0.18, 0.25]);
        let dsack: Vec<usize> = (0..p.time_s.len()).filter(|i| p.dsack[*i].is_some()).collect();
        assert_eq!(
            dsack.iter().map(|i| (p.time_s[*i], p.end[*i])).collect::<Vec<_>>(),
            [(0.25, "receiver"), (0.3, "sender")]
        );
        assert!(dsack.iter().all(|i| p.dsack[*i].as_deref() == Some("1921-2881")));
        // cwnd: 8 segments, fewer after the fast retransmit, and 8 again after the DSACK.
        assert_eq!(p.cwnd_bytes[sent[0]], Some(7680));
        assert_eq!((p.phase[sent[1]], p.ssthresh_bytes[sent[1]]), (Some("recovery"), Some(3840)));
        assert_eq!(p.cwnd_bytes[dsack[1]], Some(7680));
        assert_eq!(p.cwnd_bytes[dsack[0]], None);
    }

    #[test]
    fn the_trace_begins_with_a_handshake_and_sack_blocks_are_offsets() {
        let p = recorded();
        assert_eq!((p.flags[0].as_str(), p.seq_bytes[0], p.ack_bytes[0]), ("S", 0, None));
        let answer = p.flags.iter().position(|flags| flags == "S.").unwrap();
        assert_eq!((p.seq_bytes[answer], p.ack_bytes[answer], p.direction[answer]), (0, Some(1), "reverse"));
        let first = p.sack.iter().position(|blocks| !blocks.is_empty()).unwrap();
        assert_eq!((p.sack[first].clone(), p.ack_bytes[first]), (vec!["2881-3841".to_owned()], Some(1921)));
    }

    #[test]
    fn offsets_continue_when_sequence_numbers_wrap() {
        let mut numbers = Unwrapped { isn: SeqNum(u32::MAX - 9), highest: 0 };
        assert_eq!(
            [0xffff_fff6, 0, 0x7fff_0000, 0xfffe_0000, 0x10].map(|seq| numbers.offset(SeqNum(seq))),
            [0, 10, 0x7fff_000a, 0xfffe_000a, 0x1_0000_001a,]
        );
        assert_eq!(numbers.offset(SeqNum(0xffff_0000)), 0xffff_000a);
    }
}
