//! `reknit analyze --annotate`: the capture with a comment at each packet to which something happened.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use reknit_trace::{Analysis, Event, Events, Frame, PathPart, Verdict};
use reknit_units::Instant;
use reknit_wire::{Capture, Interface};

use crate::output::{how_many, number};
use crate::{Failure, output};

/// Writes the copy. The capture is read once more, because verdicts come later than the packets that they are about.
pub(super) fn write(to: &Path, capture: &Path, analysis: &Analysis, events: Events) -> Result<(), Failure> {
    let (events, left_out) = events.counted(analysis);
    if left_out > 0 {
        output::note(format_args!(
            "warning: {}: {left_out} verdicts have no comment: there are too many",
            to.display()
        ));
    }
    let failed = |error: io::Error| Failure::of_option("--annotate", to, &error);
    let mut copy = Copy::create(to).map_err(failed)?;
    let replacements = replacements(&events);
    let mut events = events.into_iter().peekable();
    let mut result = Ok(());
    super::frames(capture, &mut |frame| {
        let mut comments: Vec<String> = Vec::new();
        while let Some(event) = events.next_if(|event| event.frame <= frame.number) {
            let comment = comment(&event);
            if event.frame == frame.number && !comments.contains(&comment) {
                comments.push(comment);
            }
        }
        comments.extend(replacements.get(&frame.number).map(|of| format!("reknit: replaces the packet in frame {of}")));
        if result.is_ok() {
            result = copy.frame(frame, &comments);
        }
    })?;
    result.and_then(|()| copy.capture.finish()).map_err(failed)
}

/// The packets that replaced lost ones, and the first of those.
fn replacements(events: &[Event]) -> BTreeMap<u64, u64> {
    let replaced = events.iter().filter_map(|event| Some((event.replaced_by?, event.frame)));
    let mut all = BTreeMap::new();
    for (by, lost) in replaced {
        all.entry(by).or_insert(lost);
    }
    all
}

/// The copy.
struct Copy {
    capture: Capture<BufWriter<File>>,
    /// By the number of the interface in the original, and its link layer.
    interfaces: BTreeMap<(u32, u16), Interface>,
    last: u64,
}

impl Copy {
    fn create(to: &Path) -> io::Result<Copy> {
        let capture = Capture::new(BufWriter::new(File::create(to)?))?;
        Ok(Copy { capture, interfaces: BTreeMap::new(), last: 0 })
    }

    fn frame(&mut self, frame: &Frame<'_>, comments: &[String]) -> io::Result<()> {
        let key = (frame.interface, frame.link);
        let interface = if let Some(known) = self.interfaces.get(&key) {
            *known
        } else {
            let new = self.capture.interface_with_link(frame.link)?;
            *self.interfaces.entry(key).or_insert(new)
        };
        // A packet without a time gets that of the packet before.
        self.last = frame.at.unwrap_or(self.last);
        let at = Instant::from_nanos(self.last);
        self.capture.commented(interface, at, frame.bytes, frame.original_len, comments)
    }
}

/// What Wireshark shows.
fn comment(event: &Event) -> String {
    let text = match event.verdict {
        Verdict::Lost if event.side == PathPart::Downstream => "lost".to_owned(),
        Verdict::Lost if event.side == PathPart::AtCapturePoint => {
            "lost after it was captured: it did not reach the receiver's TCP; look at the host".to_owned()
        }
        Verdict::Lost => "replaces a lost packet".to_owned(),
        Verdict::Discarded => "the receiver did not keep this packet, because earlier data was missing".to_owned(),
        Verdict::Reordered { packets, late } => {
            let places = how_many(packets.into(), "place");
            format!("late, not lost: by {places} and {} ms", number(late.as_secs_f64() * 1e3))
        }
        Verdict::Duplicated if event.side == PathPart::Downstream => "the network duplicated this packet".to_owned(),
        Verdict::Duplicated => "a duplicate made by the network".to_owned(),
        Verdict::Spurious(why) => format!("spurious retransmission {}: the data was not lost", why.text()),
        Verdict::Unknown(reason) => format!("cannot tell what happened: {}", reason.text()),
        Verdict::Incident { what, count, lasted } => what.text(1, count.into(), event.len.into(), lasted.as_secs_f64()),
    };
    format!("reknit: {text}")
}
