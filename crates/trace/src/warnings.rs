//! What is missing or odd in a capture.

use reknit_units::grouped;

use crate::Analyzer;
use crate::analysis::Results;
use crate::packet::{self, Skipped};
use crate::streams::MAX_STREAMS;

/// What is missing or odd.
pub(crate) fn warnings(analyzer: &Analyzer, results: &Results) -> Vec<String> {
    let Results { missed, copies, strays, ref unseen, .. } = *results;
    let mut warnings = Vec::new();
    if let Some(damage) = &analyzer.damage {
        warnings.push(format!("the file is damaged, so only the part before the damage was read: {damage}"));
    }
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            let (packets, are) = if count == 1 { ("packet", "is") } else { ("packets", "are") };
            warnings.push(format!("{} {packets} {are} {what}", grouped(count)));
        }
    };
    let reader = &analyzer.reader;
    for (link, count) in reader.unknown_links() {
        let name = packet::link_name(link);
        note(count, &format!("left out: link type {link} ({name}) is not supported"));
    }
    note(
        reader.count(Skipped::TooShort),
        "left out: truncated before the end of the TCP header; capture at least 128 bytes",
    );
    note(reader.count(Skipped::Fragment), "left out: IP fragments of packets that were not captured completely");
    note(reader.count(Skipped::Malformed), "left out: the lengths in their headers contradict each other");
    note(analyzer.cut, "truncated inside the TCP options; capture at least 128 bytes (tcpdump -s 128)");
    note(copies, "left out: copies, captured on another interface, by a mirror port or on the other side of a router");
    note(
        strays.repeated,
        "left out: they repeat others at earlier times; the file is not sorted (reordercap sorts it) or contains packets twice",
    );
    note(
        strays.foreign,
        "left out: their sequence numbers do not belong to their connection; a firewall that changes them was captured on both \
         sides, or another connection used the same ports",
    );
    note(analyzer.timeless, "without a time");
    note(analyzer.backwards, "earlier than the packet before: the clock was set back, or files were merged");
    note(
        analyzer.streams.left_out,
        &format!("left out: they belong to connections beyond the limit of {}", grouped(MAX_STREAMS as u64)),
    );
    if analyzer.streams.was_short {
        warnings.push("too many packets were in flight at once to remember all; some verdicts are missing".to_owned());
    }
    warnings.extend(without_data(unseen));
    if missed > 0 {
        let unread = reader.compressed();
        let why = if unread == 0 {
            "packets are missing from the capture".to_owned()
        } else {
            format!(
                "packets are missing, or among the {} that were left out because they are compressed",
                grouped(unread)
            )
        };
        warnings.push(format!("{} bytes were acknowledged, but never captured: {why}", grouped(missed)));
    }
    warnings
}

/// Transfers of which only the ACKs were captured, by stream, with the bytes that they acknowledge.
fn without_data(unseen: &[(u32, u64)]) -> Option<String> {
    let (stream, bytes) = unseen.iter().max_by_key(|(_, bytes)| *bytes)?;
    let others = match unseen.len() as u64 - 1 {
        0 => String::new(),
        1 => ", nor that of 1 other".to_owned(),
        more => format!(", nor those of {} others", grouped(more)),
    };
    Some(format!(
        "the data direction of stream {stream} was not captured ({} bytes were acknowledged){others}; capture both directions",
        grouped(*bytes)
    ))
}
