//! One small connection, written in each dialect of qlog.

use serde_json::{Value, json};

/// What happens at the sender, and when, ms.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Sent(u64),
    Acked(&'static [(u64, u64)]),
    Lost(u64, &'static str),
    Window(u64),
    ProbeTimeouts(u64),
}

use Step::{Acked, Lost, ProbeTimeouts, Sent, Window};

/// Eleven packets. Packet 3 is 7 ms late, and was declared lost; packet 7 was lost. Each reduces the window.
pub(crate) fn steps() -> Vec<(f64, Step)> {
    let mut steps = vec![(0.0, Window(12_000))];
    steps.extend((0..=6).map(|n| (n as f64, Sent(n))));
    steps.extend([
        (42.0, Acked(&[(0, 2)])),
        (46.0, Acked(&[(4, 6), (0, 2)])),
        (46.0, Lost(3, "reordering_threshold")),
        (46.0, Window(6_000)),
        (50.0, Acked(&[(3, 3), (0, 6)])),
        (50.0, Window(8_000)),
    ]);
    steps.extend((7..=10).map(|n| (n as f64 + 44.0, Sent(n))));
    steps.extend([
        (94.0, Acked(&[(8, 10), (0, 6)])),
        (100.0, Lost(7, "time_threshold")),
        (100.0, Window(4_000)),
        (200.0, ProbeTimeouts(1)),
    ]);
    steps
}

const STREAM_BYTES: u64 = 1000;

/// The steps as events: names, and data with numbers as they are.
fn event(step: &Step) -> (&'static str, &'static str, Value) {
    match step {
        Sent(number) => {
            let stream = json!({ "frame_type": "stream", "stream_id": 0, "offset": number * STREAM_BYTES,
                "length": STREAM_BYTES });
            let header = json!({ "packet_type": "1RTT", "packet_number": number });
            ("transport", "packet_sent", json!({ "header": header, "raw": { "length": 1200 }, "frames": [stream] }))
        }
        Acked(ranges) => {
            let ack = json!({ "frame_type": "ack", "ack_delay": 0, "acked_ranges": ranges });
            let header = json!({ "packet_type": "1RTT", "packet_number": ranges[0].1 });
            ("transport", "packet_received", json!({ "header": header, "frames": [ack, { "frame_type": "padding" }] }))
        }
        Lost(number, trigger) => {
            let header = json!({ "packet_type": "1RTT", "packet_number": number });
            ("recovery", "packet_lost", json!({ "header": header, "trigger": trigger }))
        }
        Window(bytes) => ("recovery", "metrics_updated", json!({ "congestion_window": bytes })),
        ProbeTimeouts(count) => ("recovery", "metrics_updated", json!({ "pto_count": count })),
    }
}

fn events() -> Vec<(f64, &'static str, &'static str, Value)> {
    steps()
        .iter()
        .map(|(ms, step)| (*ms, event(step)))
        .map(|(ms, (category, name, data))| (ms, category, name, data))
        .collect()
}

/// Numbers as strings.
fn as_text(value: &mut Value) {
    match value {
        Value::Number(number) => *value = Value::String(number.to_string()),
        Value::Array(values) => values.iter_mut().for_each(as_text),
        Value::Object(fields) => fields.values_mut().for_each(as_text),
        _ => {}
    }
}

/// The packet type and the size where the first drafts have them.
fn as_first_drafts(data: &mut Value) {
    if let Some(kind) = data["header"].as_object_mut().and_then(|header| header.remove("packet_type")) {
        data["packet_type"] = kind;
        data["header"]["packet_size"] = data["raw"]["length"].clone();
        data.as_object_mut().unwrap().remove("raw");
    }
    if let Some(window) = data.as_object_mut().unwrap().remove("congestion_window") {
        data["cwnd"] = window;
    }
}

/// draft-00: names in capitals, microseconds in strings, a column for the trigger, losses without a type.
fn draft_00() -> String {
    let events: Vec<Value> = events()
        .into_iter()
        .map(|(ms, category, name, mut data)| {
            as_first_drafts(&mut data);
            if name == "packet_lost" {
                data =
                    json!({ "packet_number": data["header"]["packet_number"].to_string(), "trigger": data["trigger"] });
            }
            if name == "packet_received" {
                data["packet_type"] = json!("UNKNOWN");
            }
            let time = (ms * 1e3).to_string();
            json!([time, category.to_uppercase(), name.to_uppercase(), "DEFAULT", data])
        })
        .collect();
    json!({ "qlog_version": "draft-00", "traces": [{
        "vantage_point": { "type": "CLIENT" },
        "configuration": { "time_offset": 0, "time_units": "us" },
        "common_fields": { "group_id": "c0ffee", "protocol_type": "QUIC" },
        "event_fields": ["relative_time", "CATEGORY", "EVENT_TYPE", "TRIGGER", "DATA"],
        "events": events,
    }] })
    .to_string()
}

/// draft-01: all numbers are strings.
fn draft_01() -> String {
    let events: Vec<Value> = events()
        .into_iter()
        .map(|(ms, category, name, mut data)| {
            as_first_drafts(&mut data);
            as_text(&mut data);
            json!([ms.to_string(), category, name.replace("metrics_updated", "metric_update"), data])
        })
        .collect();
    json!({ "qlog_version": "draft-01", "traces": [{
        "common_fields": { "ODCID": "c0ffee", "reference_time": "1566844755588" },
        "event_fields": ["relative_time", "category", "event_type", "data"],
        "events": events,
        "vantage_point": { "name": "a client", "type": "client" },
    }] })
    .to_string()
}

/// draft-02: times since the event before, and the connection in each event.
fn draft_02() -> String {
    let mut before = 0.0;
    let events: Vec<Value> = events()
        .into_iter()
        .map(|(ms, category, name, data)| {
            json!([ms - std::mem::replace(&mut before, ms), "c0ffee", category, name, data])
        })
        .collect();
    json!({ "qlog_version": "draft-02", "traces": [{
        "event_fields": ["delta_time", "group_id", "category", "event", "data"],
        "vantage_point": { "type": "client" },
        "events": events,
    }] })
    .to_string()
}

/// 0.3 as one document: absolute times, and the header after the events.
fn document() -> String {
    let events: Vec<Value> = events()
        .into_iter()
        .map(|(ms, category, name, mut data)| {
            if name == "packet_lost" {
                data = json!({ "type": "1RTT", "packet_number": data["header"]["packet_number"], "trigger": data["trigger"] });
            }
            json!({ "data": data, "name": format!("{category}:{name}"), "time": 1_795_833_163_300.0 + ms })
        })
        .collect();
    let trace =
        json!({ "events": events, "vantage_point": { "type": "client" }, "common_fields": { "ODCID": "c0ffee" } });
    serde_json::to_string_pretty(&json!({ "qlog_format": "JSON", "qlog_version": "0.3", "traces": [trace] })).unwrap()
}

/// A sequence of records; `separator` precedes each.
fn sequence(separator: &str, category: Option<&str>, header: &Value) -> String {
    let records = events().into_iter().map(|(ms, own, name, mut data)| {
        if name == "packet_received" {
            // A range of one number may be written as one.
            for range in data["frames"][0]["acked_ranges"].as_array_mut().unwrap() {
                if range[0] == range[1] {
                    range.as_array_mut().unwrap().pop();
                }
            }
        }
        if category.is_some() && name == "packet_sent" {
            let length = data["frames"][0].as_object_mut().unwrap().remove("length").unwrap();
            data["frames"][0]["raw"] = json!({ "payload_length": length });
        }
        json!({ "time": ms, "name": format!("{}:{name}", category.unwrap_or(own)), "data": data })
    });
    in_lines(separator, [header.clone()].into_iter().chain(records))
}

fn in_lines(separator: &str, records: impl Iterator<Item = Value>) -> String {
    records.fold(String::new(), |lines, record| lines + separator + &record.to_string() + "\n")
}

/// 0.3 as a JSON text sequence.
pub(crate) fn json_seq() -> String {
    let trace = json!({ "vantage_point": { "type": "client" }, "common_fields": { "group_id": "c0ffee" } });
    sequence("\u{1e}", None, &json!({ "qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": trace }))
}

/// Later drafts: a schema instead of a version, other names; in lines without separators, as some stacks write it.
fn lines() -> String {
    let common = json!({ "group_id": "c0ffee", "time_format": "relative_to_epoch" });
    let trace = json!({ "vantage_point": { "type": "client" }, "common_fields": common });
    sequence("", Some("quic"), &json!({ "file_schema": "urn:ietf:params:qlog:file:sequential", "trace": trace }))
}

/// All of them.
pub(crate) fn all() -> [(&'static str, String); 6] {
    [
        ("draft-00", draft_00()),
        ("draft-01", draft_01()),
        ("draft-02", draft_02()),
        ("0.3", document()),
        ("0.3 sequence", json_seq()),
        ("lines", lines()),
    ]
}

/// The log of the server: these packets arrive at these times, ms.
pub(crate) fn server(arrivals: &[(f64, u64)]) -> String {
    let trace = json!({ "vantage_point": { "type": "server" }, "common_fields": { "group_id": "c0ffee" } });
    let events = arrivals.iter().map(|(ms, number)| {
        let header = json!({ "packet_type": "1RTT", "packet_number": number });
        json!({ "time": ms, "name": "transport:packet_received", "data": { "header": header } })
    });
    let header = json!({ "qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": trace });
    in_lines("\u{1e}", [header].into_iter().chain(events))
}
