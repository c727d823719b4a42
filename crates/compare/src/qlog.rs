//! One run in qlog, the format in which QUIC stacks record their connections, so that the viewers made for it show TCP
//! (draft-ietf-quic-qlog-main-schema-03, draft-ietf-quic-qlog-quic-events-02; version 0.3).
//!
//! It shows what the sender of the data saw. Each transmission is a packet and has its own number. A packet counts as lost when its
//! data is sent again. An ACK of data acknowledges the transmission that arrived first, as with QUIC; a TCP sender has to infer
//! which one that was. A second trace shows which of these packets arrived at the receiver, so `reknit analyze` knows which were
//! not lost but late.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use reknit_path::Packet;
use reknit_sim::{Datagram, EndSnapshot, Role, TraceEvent, Tracer};
use reknit_tcp::scoreboard::SendReason;
use reknit_tcp::segment::Flags;
use reknit_tcp::{Info, Segment};
use reknit_units::{Duration, Instant};
use serde_json::{Map, Value, json};

use crate::simulate::phase;
use crate::trace::{MAX_EVENTS, Unwrapped, record};
use crate::{Error, SimulateOptions};

/// Runs it and returns the text of a `.qlog` file with two traces for each connection; `sample_every` is ignored. None if `stop`
/// became true.
///
/// # Errors
/// If an option is invalid, or there are more than two million events.
pub fn qlog(options: &SimulateOptions, stop: &AtomicBool) -> Result<Option<String>, Error> {
    let (setup, variant) = options.look_up()?;
    let scenario = setup.scenario(&variant, options.seed);
    let is_full = AtomicBool::new(false);
    let recorder = Recorder { stop, is_full: &is_full, events: 0, flows: BTreeMap::new() };
    let title = format!("{} on {}, seed {}", variant.name, setup.profile.name, options.seed);
    let outcome = record(&scenario, recorder, (stop, &is_full), "a qlog; take a shorter run")?;
    Ok(outcome.map(|recorder| recorder.file(&title)))
}

#[derive(Debug)]
struct Recorder<'a> {
    /// Ends the run.
    stop: &'a AtomicBool,
    /// There were more events than the limit.
    is_full: &'a AtomicBool,
    events: usize,
    flows: BTreeMap<u32, Flow>,
}

/// A connection, seen from the end that sends data, and the arrivals at the other end.
#[derive(Debug, Default)]
struct Flow {
    events: Vec<Value>,
    arrivals: Vec<Value>,
    /// The numbers of the packets that were sent, by the serial numbers of their datagrams.
    numbers: BTreeMap<u64, u64>,
    own: Unwrapped,
    peers: Unwrapped,
    /// The number of the next packet.
    next: u64,
    /// Data that is not acknowledged, by its last byte.
    outstanding: BTreeMap<u64, Outstanding>,
    metrics: Map<String, Value>,
    phase: Option<&'static str>,
}

/// Data that is not acknowledged, and the numbers of packets that have it.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    first_byte: u64,
    last_sent: u64,
    first_arrived: Option<u64>,
}

impl Recorder<'_> {
    fn file(self, title: &str) -> String {
        let trace = |flow: u32, name: &str, end: &str, events: Vec<Value>| {
            let title = format!("connection {flow}");
            let fields = json!({
                "time_format": "relative", "reference_time": 0, "protocol_type": ["TCP"], "group_id": title,
            });
            json!({
                "title": title,
                "vantage_point": { "name": name, "type": end },
                "common_fields": fields,
                "events": events,
            })
        };
        let traces: Vec<Value> = self
            .flows
            .into_iter()
            .flat_map(|(flow, content)| {
                [
                    trace(flow, "sender of data", "client", content.events),
                    trace(flow, "receiver of data", "server", content.arrivals),
                ]
            })
            .collect();
        let file = json!({ "qlog_version": "0.3", "qlog_format": "JSON", "title": title, "traces": traces });
        file.to_string() + "\n"
    }
}

impl Tracer for Recorder<'_> {
    const WATCHES: bool = true;

    fn on_packet(&mut self, now: Instant, event: TraceEvent, datagram: &Datagram) {
        let flow = self.flows.entry(datagram.flow).or_default();
        let before = flow.events.len() + flow.arrivals.len();
        match (event, datagram.from) {
            (TraceEvent::Sent, Role::Sender) => flow.on_sent(now, datagram),
            (TraceEvent::Delivered, Role::Sender) => flow.on_arrival(now, datagram),
            (TraceEvent::Delivered, Role::Receiver) => flow.on_received(now, datagram),
            _ => {}
        }
        self.events += flow.events.len() + flow.arrivals.len() - before;
        self.end_if_full();
    }

    fn on_snapshot(&mut self, now: Instant, look: &EndSnapshot<'_>) {
        if look.end == Role::Sender {
            let flow = self.flows.entry(look.flow).or_default();
            let before = flow.events.len();
            flow.on_state(now, &look.connection.info(now));
            self.events += flow.events.len() - before;
            self.end_if_full();
        }
    }
}

impl Recorder<'_> {
    fn end_if_full(&self) {
        if self.events > MAX_EVENTS {
            self.is_full.store(true, Ordering::Relaxed);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Flow {
    fn push(&mut self, now: Instant, name: &str, data: &Value) {
        self.events.push(json!({ "time": now.as_secs_f64() * 1e3, "name": name, "data": data }));
    }

    fn on_sent(&mut self, now: Instant, datagram: &Datagram) {
        let segment = &datagram.segment;
        if segment.flags.has(Flags::SYN) {
            self.own.isn = segment.seq;
        }
        let number = self.next;
        self.next += 1;
        self.numbers.insert(datagram.serial, number);
        let first = self.own.offset(segment.seq);
        if segment.len > 0 {
            let last = first + u64::from(segment.len) - 1;
            let known = self.outstanding.get(&last).copied();
            let first_arrived = known.and_then(|known| known.first_arrived);
            self.outstanding.insert(last, Outstanding { first_byte: first, last_sent: number, first_arrived });
            if let Some(Outstanding { last_sent: previous, .. }) = known {
                let is_timeout = datagram.transmission.is_some_and(|sent| sent.cause == SendReason::Timeout);
                let header = json!({ "packet_type": "1RTT", "packet_number": previous });
                let mut data = json!({ "header": header });
                if is_timeout {
                    data["trigger"] = json!("pto_expired");
                }
                self.push(now, "recovery:packet_lost", &data);
            }
        }
        let frames = stream_frames(first, segment);
        let data = json!({
            "header": header(segment.flags, number), "raw": { "length": datagram.size().0 }, "frames": frames,
        });
        self.push(now, "transport:packet_sent", &data);
    }

    /// A packet arrives at the receiver.
    fn on_arrival(&mut self, now: Instant, datagram: &Datagram) {
        let Some(number) = self.numbers.get(&datagram.serial) else { return };
        let segment = &datagram.segment;
        let first = self.own.offset(segment.seq);
        let last = first + u64::from(segment.len).saturating_sub(1);
        if let Some(outstanding) = self.outstanding.get_mut(&last).filter(|_| segment.len > 0) {
            outstanding.first_arrived.get_or_insert(*number);
        }
        let header = header(segment.flags, *number);
        let frames = stream_frames(first, segment);
        let data = json!({ "header": header, "raw": { "length": datagram.size().0 }, "frames": frames });
        let time = now.as_secs_f64() * 1e3;
        self.arrivals.push(json!({ "time": time, "name": "transport:packet_received", "data": data }));
    }

    fn on_received(&mut self, now: Instant, datagram: &Datagram) {
        let segment = &datagram.segment;
        if segment.flags.has(Flags::SYN) {
            self.peers.isn = segment.seq;
        }
        let mut acknowledged = Vec::new();
        if segment.flags.has(Flags::ACK) {
            let ack = self.own.offset(segment.ack);
            let mut take = |from: u64, to: u64| {
                let inside: Vec<u64> = self.outstanding.range(from..to).map(|(last, _)| *last).collect();
                let whole =
                    inside.into_iter().filter(|last| self.outstanding[last].first_byte >= from).collect::<Vec<_>>();
                let known = whole.iter().filter_map(|last| self.outstanding.remove(last));
                acknowledged.extend(known.map(|known| known.first_arrived.unwrap_or(known.last_sent)));
            };
            take(0, ack);
            for block in segment.options.sack.as_slice() {
                take(self.own.offset(block.left), self.own.offset(block.right));
            }
        }
        let mut frames = Vec::new();
        if !acknowledged.is_empty() {
            acknowledged.sort_unstable();
            frames.push(json!({ "frame_type": "ack", "acked_ranges": ranges(&acknowledged) }));
        }
        let data = json!({
            "header": header(segment.flags, datagram.serial), "raw": { "length": datagram.size().0 }, "frames": frames,
        });
        self.push(now, "transport:packet_received", &data);
    }

    /// Records what has changed.
    fn on_state(&mut self, now: Instant, info: &Info) {
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        let values = [
            ("congestion_window", Some(json!(info.cwnd.0))),
            ("ssthresh", info.ssthresh.map(|ssthresh| json!(ssthresh.0))),
            ("bytes_in_flight", Some(json!(info.pipe.0))),
            ("smoothed_rtt", info.srtt.map(|srtt| json!(ms(srtt)))),
            ("min_rtt", info.min_rtt.map(|rtt| json!(ms(rtt)))),
        ];
        let mut changed = Map::new();
        for (name, value) in values {
            if let Some(value) = value.filter(|value| self.metrics.get(name) != Some(value)) {
                self.metrics.insert(name.to_owned(), value.clone());
                changed.insert(name.to_owned(), value);
            }
        }
        if !changed.is_empty() {
            self.push(now, "recovery:metrics_updated", &Value::Object(changed));
        }
        let new = phase(info.phase);
        if self.phase != Some(new) {
            let mut data = json!({ "new": new });
            if let Some(old) = self.phase.replace(new) {
                data["old"] = json!(old);
            }
            self.push(now, "recovery:congestion_state_updated", &data);
        }
    }
}

/// The data of a segment, whose first byte has this offset.
fn stream_frames(first: u64, segment: &Segment) -> Vec<Value> {
    if segment.len == 0 {
        return Vec::new();
    }
    vec![json!({
        "frame_type": "stream", "stream_id": 0, "offset": first.saturating_sub(1), "length": segment.len,
        "fin": segment.flags.has(Flags::FIN),
    })]
}

fn header(flags: Flags, number: u64) -> Value {
    let kind = if flags.has(Flags::SYN) { "initial" } else { "1RTT" };
    json!({ "packet_type": kind, "packet_number": number })
}

/// Consecutive numbers as ranges, `[first, last]`. The numbers are in order.
fn ranges(numbers: &[u64]) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == *number => *last = *number,
            _ => ranges.push([*number, *number]),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use reknit_sim::Plan;

    use super::*;
    use crate::ScenarioOptions;
    use crate::trace::tests::PLAN;

    /// DSACK-R retransmits the third segment of eight, which is late, and then undoes the reduction.
    fn events() -> Vec<Value> {
        let scenario = ScenarioOptions::of(Plan::parse("s.toml", &PLAN.replace("38400 B", "7680 B")).unwrap());
        let options = SimulateOptions { scenario, variant: "dsack-r".to_owned(), seed: 1, sample_every: None };
        let text = qlog(&options, &AtomicBool::new(false)).unwrap().unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&file["qlog_version"], file["traces"].as_array().unwrap().len()), (&json!("0.3"), 2));
        // The late packet arrives behind those that overtook it, and all of them do.
        let arrived = file["traces"][1]["events"].as_array().unwrap().iter();
        let mut arrived: Vec<u64> = arrived.filter_map(|e| e["data"]["header"]["packet_number"].as_u64()).collect();
        assert!(!arrived.is_sorted(), "{arrived:?}");
        arrived.sort_unstable();
        assert!(arrived.iter().copied().eq(0..arrived.len() as u64), "{arrived:?}");
        file["traces"][0]["events"].as_array().unwrap().clone()
    }

    #[test]
    fn a_late_segment_is_declared_lost_and_acknowledged_when_it_arrives() {
        let events = events();
        let named = |name: &str| -> Vec<&Value> { events.iter().filter(|event| event["name"] == name).collect() };
        let with_data = |event: &&&Value| event["data"]["frames"][0]["frame_type"] == "stream";
        let sent: Vec<&Value> = named("transport:packet_sent");
        let data: Vec<&&Value> = sent.iter().filter(with_data).collect();
        let number = |event: &Value| event["data"]["header"]["packet_number"].as_u64().unwrap();
        // The SYN is packet 0, the ACK of the handshake 1, and data begins with 2.
        assert_eq!((data.len(), number(data[2]), &data[2]["data"]["frames"][0]["offset"]), (9, 4, &json!(1920)));
        let lost = named("recovery:packet_lost");
        assert_eq!((lost.len(), number(lost[0]), &lost[0]["time"]), (1, 4, &data[8]["time"]));
        let acknowledged: Vec<u64> = named("transport:packet_received")
            .iter()
            .flat_map(|event| event["data"]["frames"].as_array().unwrap())
            .flat_map(|frame| frame["acked_ranges"].as_array().unwrap())
            .flat_map(|range| range[0].as_u64().unwrap()..=range[1].as_u64().unwrap())
            .collect();
        // The late packet arrives before its retransmission, which no ACK acknowledges.
        assert_eq!((number(data[8]), acknowledged), (10, vec![2, 3, 5, 6, 7, 8, 9, 4]));
        let states = named("recovery:congestion_state_updated");
        assert!(states.iter().any(|event| event["data"]["new"] == "recovery"), "{states:?}");
        assert_eq!(named("recovery:metrics_updated")[0]["data"]["congestion_window"], json!(7680));
    }

    #[test]
    fn consecutive_numbers_are_one_range() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), [[1, 3], [7, 7], [9, 10]]);
    }
}
