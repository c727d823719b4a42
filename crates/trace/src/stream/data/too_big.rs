//! Packets that a router has dropped because they were larger than the next link carries, as its ICMP message says. Called by
//! `Direction` for each message.

use reknit_units::Duration;

use super::super::log::{Finding, FindingSink};
use super::super::ranges::Range;
use super::super::sighting::CapturedSegment;
use super::Data;
use crate::{Incident, PathPart};

impl Data {
    /// The packet with these bytes and this IP identification was too big: the message in `frame` names the largest that fits.
    pub(in crate::stream) fn on_too_big(
        &mut self,
        (start, end): (u64, u64),
        ip_id: Option<u16>,
        (frame, mtu): (u64, Option<u32>),
        out: &mut FindingSink<'_>,
    ) {
        self.path_mtu = self.path_mtu.into_iter().chain(mtu).min();
        let mut index = self.ranges.locate(start);
        let before = index.checked_sub(1).and_then(|before| self.ranges.at(before)).and_then(dropped);
        let Some(packet) = self.ranges.at(index).filter(|range| range.start < end).map(|range| sent(range, ip_id))
        else {
            // It was not captured.
            return report(frame, (start, end), out);
        };
        let mut is_new = before != Some(packet);
        // The length of a TCP header that the message does not quote is not known.
        while self.ranges.at(index).is_some_and(|range| range.start < end && sent(range, ip_id) == packet) {
            index = self.ranges.narrow(index, start, end);
            let Some(range) = self.ranges.at_mut(index) else { break };
            is_new &= dropped(range) != Some(packet);
            mark(range, packet);
            index += 1;
        }
        // With segmentation offload, one captured packet is several packets on the wire.
        if is_new {
            report(packet, (start, end), out);
        }
    }
}

fn report(frame: u64, bytes: (u64, u64), out: &mut FindingSink<'_>) {
    let (what, side) = (Incident::TooBig, PathPart::Connection);
    out.incident(&Finding { what, side, frame, at: out.now, bytes, count: 1, lasted: Duration::ZERO });
}

/// The packet that carried the range and was dropped: that with this IP identification, or else the last one.
fn sent(range: &Range, ip_id: Option<u16>) -> u64 {
    let id = ip_id.filter(|id| *id != 0);
    let mut all = std::iter::once(&range.first).chain(range.again.iter().map(|again| &again.seen));
    let is_it = |seen: &&CapturedSegment| id.is_some() && seen.ip_id() == id;
    all.find(is_it).map_or(range.last_sent().frame, |seen| seen.frame)
}

fn mark(range: &mut Range, packet: u64) {
    let again = range.again.iter_mut().map(|again| &mut again.seen);
    let all = std::iter::once(&mut range.first).chain(again);
    all.filter(|seen| seen.frame == packet).for_each(CapturedSegment::note_too_big);
}

/// The last transmission of a range that was dropped.
fn dropped(range: &Range) -> Option<u64> {
    let all = std::iter::once(&range.first).chain(range.again.iter().map(|again| &again.seen));
    all.rev().find(|seen| seen.is_too_big()).map(|seen| seen.frame)
}
