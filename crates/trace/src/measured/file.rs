//! The measured path as a path file.

use std::fmt::Write;

use reknit_units::Duration;

use super::{Limits, MeasuredPath};
use crate::{CapturePoint, DirectionReport};

/// A packet gets what happened to one that was sent at most so many round trips earlier or later, at least so long.
/// In a shorter time, a slow sender has sent few packets, of which one that is lost would stand for many.
const WITHIN: u64 = 5;
const MIN_WITHIN: Duration = Duration::from_millis(100);
/// Values on a line.
const PER_LINE: usize = 12;

impl MeasuredPath {
    /// The path as TOML (`docs/reference/paths.md`). The rest of the path follows the bottleneck; its delay changes for all
    /// packets at once, and each packet may be late or lost.
    pub fn toml(&self) -> String {
        let one_way = micros(self.round_trip / 2);
        let queue = if self.overflowed { "" } else { "\n# The queue did not overflow: it may be longer." };
        let mut text = format!(
            "description = \"as measured: {:.2} Mbit/s, {:.1} ms round trip, {} of {} packets late, {} lost\"\n\
             source = \"{}\"\n\n\
             [[forward]]\nkind = \"link\"\nname = \"bottleneck\"\nrate = \"{:.0} kbit/s\"\nqueue = \"{} packets\"{queue}\n",
            self.rate_mbit_s,
            self.round_trip.as_secs_f64() * 1e3,
            self.late,
            self.packets,
            self.lost,
            self.source,
            self.rate_mbit_s * 1e3,
            self.queue_packets,
        );
        if !self.outages.is_empty() {
            text.push_str("\n# When all packets were lost.\n");
            let changes = self.outages.iter().flat_map(|(from, until)| [(*from, "lost"), (*until, "0 ms")]);
            let changes = std::iter::once((Duration::ZERO, "0 ms")).chain(changes);
            self.changes(&mut text, "outages", changes.map(|(at, fate)| (at, fate.to_owned())).collect());
        }
        if self.delays.len() > 1 {
            text.push_str("\n# How much longer the path became for all packets.\n");
            self.changes(&mut text, "route", self.delays.iter().map(|(at, delay)| (*at, micros(*delay))).collect());
            text.push_str("keep_order = true\n");
        }
        if self.fates.iter().any(|fate| fate.late != Some(Duration::ZERO)) {
            text.push_str("\n# How late each packet was, or that it was lost.\n");
            let within = micros((self.round_trip * WITHIN).max(MIN_WITHIN));
            let lot = |late: Option<Duration>| late.map_or_else(|| "lost".to_owned(), micros);
            stage(&mut text, "fates", &within, self.fates.iter().map(|fate| (fate.at, lot(fate.late))));
        }
        let _ = write!(
            text,
            "\n[[forward]]\nkind = \"link\"\ndelay = \"{one_way}\"\n\n[[reverse]]\nkind = \"link\"\ndelay = \"{one_way}\"\n{}",
            self.tcp
        );
        text
    }

    /// A `recorded` stage that does the same to all packets from one time to the next. A recording starts over after its
    /// last time, so this must be the end of the capture.
    fn changes(&self, text: &mut String, name: &str, mut changes: Vec<(Duration, String)>) {
        if let Some((at, last)) = changes.last().cloned() {
            changes.push((at.max(self.duration), last));
        }
        stage(text, name, "0 ms", changes.into_iter());
    }
}

/// A `recorded` stage by time. Writing to a string cannot fail.
fn stage(text: &mut String, name: &str, within: &str, fates: impl Iterator<Item = (Duration, String)>) {
    let (at, packets): (Vec<String>, Vec<String>) = fates.map(|(at, fate)| (micros(at), fate)).unzip();
    let _ = write!(text, "[[forward]]\nkind = \"recorded\"\nname = \"{name}\"\nwithin = \"{within}\"\n");
    list(text, "at", &at);
    list(text, "packets", &packets);
}

fn list(text: &mut String, key: &str, values: &[String]) {
    let _ = writeln!(text, "{key} = [");
    for line in values.chunks(PER_LINE) {
        let quoted: Vec<String> = line.iter().map(|value| format!("\"{value}\"")).collect();
        let _ = writeln!(text, "    {},", quoted.join(", "));
    }
    text.push_str("]\n");
}

fn micros(span: Duration) -> String {
    match span.as_nanos() / 1_000 {
        0 => "0 ms".to_owned(),
        micros => format!("{micros} us"),
    }
}

/// The receive buffer of a receiver that does not limit the transfer, KiB.
const AMPLE: u32 = 16 << 10;

/// The options of both ends of a connection, and what limits its data in flight.
pub(super) fn direction_tcp(direction: &DirectionReport, limits: Limits) -> String {
    tcp(direction.segment(), direction.options.sack, direction.options.timestamps, limits)
}

/// The options of both ends: the negotiated ones, or else those of common hosts. `segment`: the payload of full segments.
pub(crate) fn tcp(segment: u64, sack: Option<bool>, timestamps: Option<bool>, limits: Limits) -> String {
    let receive_buffer = limits.receive_window.map_or(AMPLE, |window| window.div_ceil(1 << 10));
    let mut text = format!(
        "\n[tcp]\nmss = {}\nmin_rto = \"200 ms\"\nreceive_buffer = \"{receive_buffer} KiB\"\nack_delay = \"40 ms\"\n\
         rtt_samples = \"per-ack\"\n",
        segment.clamp(100, 9000) + if timestamps == Some(false) { 0 } else { 12 }
    );
    if let Some(packets) = limits.most_in_flight {
        let _ = writeln!(text, "max_window = {packets} # the sender's buffer");
    }
    if sack == Some(false) {
        text.push_str("sack = false\n");
    }
    if let Some(timestamps) = timestamps {
        let _ = writeln!(text, "timestamps = {timestamps}");
    }
    text
}

/// The direction that the path was measured from.
pub(super) fn source(direction: &DirectionReport) -> String {
    let place = match direction.captured_at {
        CapturePoint::Sender => "at the sender",
        CapturePoint::Middle => "between the ends",
        CapturePoint::Receiver => "at the receiver",
    };
    format!("a capture {place}, stream {}, {} to {}", direction.stream, direction.from, direction.to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_lasts_until_the_end_of_the_capture() {
        let ms = Duration::from_millis;
        let path = MeasuredPath {
            rate_mbit_s: 10.0,
            rate_is_least: false,
            queue_packets: 50,
            overflowed: true,
            round_trip: ms(40),
            packets: 100,
            queue_drops: 0,
            lost: 10,
            late: 0,
            duration: ms(9000),
            receive_window: None,
            most_in_flight: None,
            idle: None,
            progress: Vec::new(),
            delays: vec![(ms(0), ms(0)), (ms(1000), ms(20))],
            outages: vec![(ms(2000), ms(2300))],
            fates: Vec::new(),
            tcp: String::new(),
            source: "a test".to_owned(),
        };
        let text = path.toml();
        let has =
            |at: &str, packets: &str| text.contains(&format!("at = [\n    {at},\n]\npackets = [\n    {packets},\n]\n"));
        assert!(has(r#""0 ms", "1000000 us", "9000000 us""#, r#""0 ms", "20000 us", "20000 us""#), "{text}");
        assert!(text.contains("]\nkeep_order = true\n"), "{text}");
        let outage = r#""0 ms", "2000000 us", "2300000 us", "9000000 us""#;
        assert!(has(outage, r#""0 ms", "lost", "0 ms", "0 ms""#), "{text}");
    }
}
