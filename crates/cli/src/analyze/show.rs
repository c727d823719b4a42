//! The analysis of a capture as text.

use std::fmt::Write;

use reknit_config::visible;
use reknit_trace::{
    Advice, Analysis, CapturePoint, Confidence, Cost, DirectionReport, Incident, IncidentReport, ReorderingReport,
    UnknownReason, Verdicts, how_often,
};

use crate::output::{how_many, number, per_cent, whole};
use crate::table::{self, Align, Column, Screen};

/// Kinds of packets that are left out and named.
const MAX_KINDS: usize = 6;
/// A share of the time that is worth a word.
pub(super) const MUCH: f64 = 0.1;
/// A transfer that took less time has no meaningful rate, seconds.
const MIN_RATE_TIME: f64 = 0.01;
/// Rows of the table.
pub(super) const MAX_ROWS: usize = 20;
/// What happened to the connection: the most important.
const MAX_INCIDENTS: usize = 3;
/// A share below one of so many does not change the picture.
pub(super) const MOSTLY: u64 = 20;
/// A share that is not zero, and too small for a digit.
const LITTLE: &str = "less than 0.1 %";
/// What to do if nothing happened.
pub(super) const QUIET: &str = "nothing: no packet was lost or late";
/// What happened then.
pub(super) const IN_ORDER: &str = "all packets arrived once and in order";

pub(super) fn text(analysis: &Analysis, screen: Screen) -> String {
    let width = screen.text_width();
    let mut text = screen.heading(&title(analysis)) + "\n";
    if let Some(left_out) = left_out(analysis) {
        let _ = writeln!(text, "{}", table::wrap(&left_out, width, 2));
    }
    text.push('\n');
    let Some(worst) = analysis.directions.first() else {
        return text + "No connection carried data.\n";
    };
    let columns = columns(&analysis.directions, MAX_ROWS);
    text.push_str(&answer(&first_screen(worst), &worst.advice, (&columns, analysis.directions.len()), screen));
    text.push_str("--json prints all numbers; --path FILE.toml writes the path for `reknit compare`.\n");
    text
}

/// The lines about the worst direction with the rest of the advice, and the table of directions: its columns, and how many there are.
pub(super) fn answer(
    lines: &[(String, String)],
    advice: &[Advice],
    (columns, directions): (&[Column], usize),
    screen: Screen,
) -> String {
    let width = screen.text_width();
    let mut text = table::definitions(lines, width);
    for more in advice.iter().skip(1) {
        let _ = writeln!(text, "{}", table::wrap(&format!("- also: {more}"), width, 2));
    }
    text.push('\n');
    text.push_str(&table::render(columns, screen));
    let left_out = directions.saturating_sub(MAX_ROWS);
    if left_out > 0 {
        let _ = writeln!(text, "{left_out} less affected directions are not shown; --json lists all of them.");
    }
    text
}

pub(super) fn title(analysis: &Analysis) -> String {
    format!(
        "{}: {} in {} s, {}",
        visible(&analysis.file),
        how_many(analysis.packets, "packet"),
        number(analysis.duration_s),
        how_many(analysis.streams, "TCP connection"),
    )
}

/// What is left out, by name; none if nothing is.
pub(super) fn left_out(analysis: &Analysis) -> Option<String> {
    let kinds: Vec<String> = analysis.left_out.iter().take(MAX_KINDS).map(ToString::to_string).collect();
    let more = analysis.left_out.iter().skip(MAX_KINDS).map(|kind| kind.packets).sum::<u64>();
    let more = if more > 0 { format!(", {} of others (--json)", whole(more)) } else { String::new() };
    let most = analysis.left_out.first()?;
    let first = format!("{} {}", how_many(most.packets, "packet"), most.phrase());
    let kinds = [&[first][..], &kinds[1..]].concat().join(", ");
    Some(format!("left out: {kinds}{more}"))
}

/// A lower rate is shown as zero, Mbit/s.
const LEAST_SHOWN: f64 = 0.005;

/// The answer: what happened, on what path, what it cost, what to do, and how sure that is.
pub(super) fn first_screen(worst: &DirectionReport) -> Vec<(String, String)> {
    let none = if worst.incident(Incident::ResetByReceiver).is_some() && worst.verdicts.all() == 0 {
        "the network is not the cause: the receiver reset the connection"
    } else if !shows_arrivals(worst) && worst.round_trip.is_some() {
        "capture for longer: the acknowledgments tell what arrived"
    } else if !shows_arrivals(worst) {
        "capture both directions, and for longer: the acknowledgments tell what arrived"
    } else if worst.is_quiet() {
        QUIET
    } else if worst.verdicts.all() == 0 {
        "the network is not the cause: no packet was lost or late"
    } else {
        "capture at the other end too: this capture does not show what caused the retransmissions"
    };
    let do_this = worst.advice.first().map_or(none.to_owned(), ToString::to_string);
    let lines = [
        ("what", Some(what(worst))),
        ("path", path(worst)),
        ("cost", cost(worst)),
        ("do", Some(do_this)),
        ("sure", Some(sure(worst))),
    ];
    lines.into_iter().filter_map(|(name, line)| Some((name.to_owned(), line?))).collect()
}

fn what(worst: &DirectionReport) -> String {
    format!("stream {}, {} to {}: {}", worst.stream, worst.from, worst.to, happened(worst))
}

/// False if there are no acknowledgments, and the packets may still be lost after they were captured.
fn shows_arrivals(worst: &DirectionReport) -> bool {
    worst.acknowledged_bytes > 0 || worst.captured_at == CapturePoint::Receiver
}

/// Bytes that were sent once, and whose arrival the capture does not show.
fn not_acknowledged(worst: &DirectionReport) -> u64 {
    if worst.captured_at == CapturePoint::Receiver { 0 } else { worst.bytes.saturating_sub(worst.acknowledged_bytes) }
}

fn happened(worst: &DirectionReport) -> String {
    let mut incidents: Vec<&IncidentReport> = worst.incidents.iter().collect();
    let weight = |incident: &IncidentReport| (incident.what.is_failure(), !incident.what.is_harmless());
    incidents.sort_by(|a, b| weight(b).cmp(&weight(a)).then(b.lasted_s.total_cmp(&a.lasted_s)));
    let is_failed = incidents.iter().any(|incident| incident.what.is_failure());
    let packets = happened_to_packets(worst);
    let mut parts: Vec<String> = incidents.iter().take(MAX_INCIDENTS).map(|incident| incident.text()).collect();
    // What failed, or stopped everything, comes before what happened to packets, and a reset before what it left undecided.
    let verdicts = &worst.verdicts;
    let is_only_reset = verdicts.reasons.get(&UnknownReason::ConnectionReset) == Some(&verdicts.all());
    let place = if is_failed || is_only_reset { parts.len() } else { 0 };
    parts.splice(place..place, packets);
    parts.join("; ")
}

/// None: nothing that is worth a word.
fn happened_to_packets(worst: &DirectionReport) -> Option<String> {
    let verdicts = &worst.verdicts;
    let (lost, spurious, unknown) = (verdicts.lost, verdicts.spurious, verdicts.cannot_tell);
    let retransmissions = lost + spurious + verdicts.discarded;
    let were_spurious = || were_spurious(verdicts);
    let is_whole = worst.incident(Incident::NotCaptured).is_none();
    let are_most_unknown = unknown * 2 > verdicts.all();
    let has_others = verdicts.reordered + verdicts.duplicated > 0;
    let text = match (lost, spurious) {
        _ if !shows_arrivals(worst) && worst.packets > 0 && worst.incidents.is_empty() => without_acks(worst),
        _ if verdicts.all() == 0 && worst.options.hidden_sacks > 0 => {
            "nothing was retransmitted; the SACK blocks that would show what was late are cut off".to_owned()
        }
        _ if worst.is_quiet() => match not_acknowledged(worst) {
            0 => IN_ORDER.to_owned(),
            bytes => format!(
                "all packets that were acknowledged arrived once and in order; the capture has no acknowledgment of the last {}",
                how_many(bytes, "byte")
            ),
        },
        _ if verdicts.all() == 0 && is_whole || worst.is_unseen() => return None,
        _ if verdicts.all() == 0 => "nothing was lost or late, as far as the capture shows".to_owned(),
        (lost, _) if verdicts.discarded > 0 => format!(
            "{} lost; the receiver did not keep {} that arrived out of order; {}",
            packets_were(lost),
            how_many(verdicts.discarded, "packet"),
            if spurious == 0 { format!("all {retransmissions} retransmissions were needed") } else { were_spurious() },
        ),
        (0, 0) if verdicts.reordered > 0 && unknown == 0 && is_whole => {
            "packets were reordered, and nothing was lost".to_owned()
        }
        (0, 0) if unknown > 0 && (are_most_unknown || !has_others) => return Some(no_verdict(verdicts)),
        (0, 0) if verdicts.reordered > 0 => "packets were reordered".to_owned(),
        (0, 0) if verdicts.duplicated > 0 => {
            format!("nothing was lost or late, but the network duplicated {}", how_many(verdicts.duplicated, "packet"))
        }
        (0, 0) => "nothing was lost or retransmitted spuriously".to_owned(),
        (lost, 0) if verdicts.lost_in_host == lost => {
            format!("{} lost between the point of capture and the receiver's TCP", packets_were(lost))
        }
        (lost, 0) => format!("{} lost, and nothing was retransmitted spuriously", packets_were(lost)),
        // A few losses among many spurious retransmissions do not change the picture.
        (lost, _)
            if lost * MOSTLY <= retransmissions && verdicts.reordered > 0 && unknown * MOSTLY <= retransmissions =>
        {
            format!("packets were late, not lost: {}", were_spurious())
        }
        (0, _) if unknown == 0 && is_whole => format!("nothing was lost: {}", were_spurious()),
        (0, _) => were_spurious(),
        _ => format!("{} lost; {}", packets_were(lost), were_spurious()),
    };
    // What little has a verdict may not be typical.
    let is_minority = unknown > retransmissions && shows_arrivals(worst);
    Some(match is_minority {
        true if are_most_unknown => format!("{}; {text}", no_verdict(verdicts)),
        true => format!("{text}; {}", no_verdict(verdicts)),
        false => text,
    })
}

/// Nothing was acknowledged. If the round trip is known, packets of both ends were captured.
fn without_acks(worst: &DirectionReport) -> String {
    if worst.round_trip.is_some() {
        format!("the capture ends before its {} could be acknowledged", how_many(worst.bytes, "byte"))
    } else {
        "no acknowledgment of its packets was captured, so whether they arrived is not known".to_owned()
    }
}

/// How many retransmissions were spurious.
fn were_spurious(verdicts: &Verdicts) -> String {
    let (spurious, all) = (verdicts.spurious, verdicts.lost + verdicts.spurious + verdicts.discarded);
    let with = if verdicts.cannot_tell > 0 { " with a verdict" } else { "" };
    let of = how_many(all, "retransmission") + with;
    let share = per_cent(spurious as f64 / all.max(1) as f64);
    format!("{} of {of} ({share}) {} spurious", whole(spurious), if spurious == 1 { "was" } else { "were" })
}

/// How many events have no verdict, and why most of them have none.
fn no_verdict(verdicts: &Verdicts) -> String {
    let most = verdicts.reasons.iter().max_by_key(|(_, count)| **count);
    let reason = most.map_or("the capture does not tell", |(reason, _)| reason.text());
    format!("no verdict on {} ({reason})", how_many(verdicts.cannot_tell, "event"))
}

pub(super) fn packets_were(n: u64) -> String {
    format!("{} {}", how_many(n, "packet"), if n == 1 { "was" } else { "were" })
}

/// How many packets were reordered, and by how much. `is_hidden`: the capture does not show it if it shows none.
pub(super) fn reordered(reordering: &ReorderingReport, is_hidden: bool) -> String {
    match by_how_much(reordering) {
        Some(extent) => format!("{} of packets were reordered, {extent}", small_share(reordering.ratio)),
        None if is_hidden => "whether packets were reordered is not known".to_owned(),
        None => "no packet was reordered".to_owned(),
    }
}

/// By how much late packets were late; none if no packet was.
pub(super) fn by_how_much(reordering: &ReorderingReport) -> Option<String> {
    Some(format!(
        "by {} and {} ms (99 %: {}, {} ms)",
        how_many(reordering.extent_p50?, "place"),
        number(reordering.late_p50_ms.unwrap_or(0.0)),
        how_many(reordering.extent_p99?, "place"),
        number(reordering.late_p99_ms.unwrap_or(0.0)),
    ))
}

/// Bytes in a time, as a rate if that is long enough for one.
pub(super) fn goodput(bytes: u64, duration_s: f64, mbit_s: f64) -> String {
    if duration_s < MIN_RATE_TIME {
        format!("{} in {} ms", how_many(bytes, "byte"), number(duration_s * 1e3))
    } else {
        format!("goodput {} Mbit/s", number(mbit_s))
    }
}

/// None: no packet was captured, so nothing is known.
fn path(worst: &DirectionReport) -> Option<String> {
    let reordering = &worst.reordering;
    if worst.packets == 0 {
        return worst
            .round_trip
            .as_ref()
            .map(|round_trip| format!("the round trip is {} ms", number(round_trip.least_ms)));
    }
    let is_known = shows_arrivals(worst);
    let mut text = reordered(reordering, worst.options.hidden_sacks > 0 || !is_known);
    let buffer = worst.density.buffer_p99.filter(|packets| *packets > 0 && reordering.extent_p50.is_some());
    if let Some(packets) = buffer {
        let _ = write!(text, "; a buffer of {} restores the order (99 %)", how_many(packets, "packet"));
    }
    let may_hide_losses = [Incident::NoAnswer, Incident::NoAnswerToFullSegments, Incident::NotCaptured]
        .into_iter()
        .any(|what| worst.incident(what).is_some());
    if worst.verdicts.lost > 0 || is_known && !may_hide_losses {
        let _ = write!(text, "; {} were lost", lost(worst));
    } else {
        text.push_str("; how many were lost is not known");
    }
    if worst.verdicts.duplicated > 0 {
        let _ = write!(text, "; the network duplicated {}", whole(worst.verdicts.duplicated));
    }
    if let Some(round_trip) = &worst.round_trip {
        let _ = write!(text, "; the round trip is {} ms", number(round_trip.least_ms));
    }
    Some(text)
}

/// The share of packets that were lost; at most, if some have no verdict.
fn lost(worst: &DirectionReport) -> String {
    let share = |packets: u64| small_share((packets as f64 / worst.packets.max(1) as f64).min(1.0));
    let (least, most) = (share(worst.verdicts.lost), share(worst.verdicts.lost + worst.verdicts.cannot_tell));
    if least == most || most == LITTLE {
        most
    } else if least == LITTLE {
        format!("up to {most}")
    } else {
        format!("{least} to {most}")
    }
}

/// A share that may be too small for a digit.
fn small_share(share: f64) -> String {
    if share > 0.0 && share < 0.0005 { LITTLE.to_owned() } else { per_cent(share) }
}

/// None: no packet was captured, and nothing acknowledged.
fn cost(worst: &DirectionReport) -> Option<String> {
    let cost = &worst.cost;
    let mut text = match worst.acknowledged_bytes {
        0 if worst.packets == 0 => return None,
        0 if !shows_arrivals(worst) => "not known: the capture has no acknowledgments".to_owned(),
        bytes => goodput(bytes, worst.duration_s, worst.goodput_mbit_s),
    };
    let which_cost = if cost.lost_is_least {
        format!("which cost {} Mbit/s", estimated(cost))
    } else if cost.lost_most_mbit_s < LEAST_SHOWN {
        "at no measurable cost".to_owned()
    } else {
        format!("which cost an estimated {} Mbit/s", estimated(cost))
    };
    if cost.false_reductions > 0 {
        let times = how_often(cost.false_reductions);
        let _ = write!(text, "; the sender reduced its window {times} although nothing was lost, {which_cost}");
    } else if cost.lost_least_mbit_s > MUCH * worst.goodput_mbit_s {
        let _ = write!(text, "; the sender stayed slow after spurious retransmissions, {which_cost}");
    } else if worst.verdicts.spurious > 0 {
        text.push_str("; the rate did not fall after the spurious retransmissions");
    }
    if worst.waited_s > 0.0 {
        let of = worst.waited_s / worst.duration_s.max(1e-9);
        let _ = write!(text, "; data waited behind missing data {} of the time", per_cent(of.min(1.0)));
    }
    for (limited_s, by) in [(worst.limited_by_receiver_s, "receiver"), (worst.limited_by_sender_s, "sender")] {
        let of = limited_s / worst.duration_s.max(1e-9);
        if of >= MUCH {
            let _ = write!(text, "; the {by} limited the transfer {} of the time", per_cent(of.min(1.0)));
        }
    }
    Some(text)
}

/// The estimates of what spurious retransmissions cost, Mbit/s.
pub(crate) fn estimated(cost: &Cost) -> String {
    let (least, most) = (number(cost.lost_least_mbit_s), number(cost.lost_most_mbit_s));
    if cost.lost_is_least {
        format!("at least {least}")
    } else if least == most {
        least
    } else {
        format!("{least} to {most}")
    }
}

fn sure(worst: &DirectionReport) -> String {
    let place = match worst.captured_at {
        CapturePoint::Sender => "at the sender",
        CapturePoint::Middle => "between the ends",
        CapturePoint::Receiver => "at the receiver",
    };
    let how = match worst.confidence {
        Confidence::Given => "as given",
        Confidence::High => "clear from the round trips",
        Confidence::Low => "likely; --at overrides",
        Confidence::None => "unknown; say it with --at",
    };
    let all = worst.verdicts.all();
    if all == 0 {
        return format!("captured {place} ({how})");
    }
    let told = 1.0 - worst.verdicts.cannot_tell as f64 / all as f64;
    format!("captured {place} ({how}); a verdict on {} of {}", per_cent(told), how_many(all, "event"))
}

fn place(place: CapturePoint) -> &'static str {
    match place {
        CapturePoint::Sender => "sender",
        CapturePoint::Middle => "middle",
        CapturePoint::Receiver => "receiver",
    }
}

pub(super) fn columns(directions: &[Box<DirectionReport>], rows: usize) -> Vec<Column> {
    let of = |title, rank, align, cell: fn(&DirectionReport) -> String| {
        Column::of(title, rank, align, directions.iter().take(rows).map(|direction| &**direction), cell)
    };
    let left = |title, rank, cell| of(title, rank, Align::Left, cell);
    let column = |title, rank, cell| of(title, rank, Align::Right, cell);
    vec![
        column("stream", 0, |d| d.stream.to_string()),
        left("from", 1, |d| d.from.clone()),
        left("to", 2, |d| d.to.clone()),
        left("captured at", 3, |d| place(d.captured_at).to_owned()),
        column("Mbit/s", 0, |d| number(d.goodput_mbit_s)),
        column("packets", 1, |d| whole(d.packets)),
        column("lost", 0, |d| whole(d.verdicts.lost)),
        column("reordered", 0, |d| whole(d.verdicts.reordered)),
        column("places p99", 2, |d| d.reordering.extent_p99.map_or(String::new(), |n| n.to_string())),
        column("late p99, ms", 1, |d| maybe(d.reordering.late_p99_ms)),
        column("duplicated", 3, |d| whole(d.verdicts.duplicated)),
        column("discarded", 3, |d| whole(d.verdicts.discarded)),
        column("spurious", 0, |d| whole(d.verdicts.spurious)),
        column("cannot tell", 2, |d| whole(d.verdicts.cannot_tell)),
        column("false reductions", 1, |d| whole(d.cost.false_reductions)),
        column("waited, s", 2, |d| number(d.waited_s)),
    ]
}

fn maybe(value: Option<f64>) -> String {
    value.map_or(String::new(), number)
}
