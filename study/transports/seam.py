"""Give the published quinn-proto a seam for loss detection, with `reknit-recovery` in it.

    python study/transports/seam.py sender      build the simulator with the changes at the sender,
    python study/transports/seam.py receiver    at the receiver,
    python study/transports/seam.py both        or at both

The program is `target/transports/release/reknit-transports-sender`, and so on. The crate is copied from cargo's
registry, the edits below are made, and the files of `seam/` are added. The text of the crate itself is not part of this
repository: an edit names a line that must occur exactly once. At the sender:

* `TransportConfig` has a `LossDetection`. By default it is that of the published crate, and nothing changes.
* With `LossDetection::Recovery`, a path has a `Recovery`. It is told of packets that are sent, acknowledged and lost,
  of marks (ECN) and of persistent congestion. It says when a packet is lost, when to reduce the window, and which
  reductions were spurious.
* Then the probe timer also runs while packets are missing, because the wait may be longer than it.
* Then packet numbers in the application's space have at least two bytes: in one, the receiver cannot tell a packet that
  128 others have overtaken.

At the receiver, what limits how late a packet may be:

* It remembers which of the last 4096 packets it has received, not 129: older ones count as duplicates.
* It remembers up to 2048 ranges, not 64. If they do not fit into an ACK, the lowest are left out, except those of the
  32 packets that arrived last: otherwise a packet that is late by more ranges than fit is never reported.
* It keeps up to 32 packets that overtake the end of the handshake, and processes them after it (RFC 9001 section 5.7).
* It accepts one piece of a stream between gaps for each 512 bytes that it holds, if that is more than 1024: with more,
  it closes the connection. The limit of 1024 is the fix of RUSTSEC-2026-0185, tiny pieces that exhaust memory. For
  tiny pieces it stays.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CRATE = ROOT / "study/transports"
VERSION = "0.11.19"


@dataclass(frozen=True)
class Edit:
    """Text that goes before, after or in place of a line of a file."""

    file: str
    line: str
    how: str
    text: str
    occurrence: str = "only"


SENDER = [
    # The controller.
    Edit(
        "congestion.rs",
        "fn on_mtu_update(&mut self, new_mtu: u16);",
        "after",
        """
    /// The window is to be reduced for the congestion event `event`
    #[allow(unused_variables)]
    fn on_reduction(&mut self, now: Instant, event: u64) {
        self.on_congestion_event(now, now, false, 0);
    }

    /// The congestion event `event` was spurious
    #[allow(unused_variables)]
    fn on_spurious(&mut self, now: Instant, event: u64) {}

    /// Whether it is unknown if some retransmissions were needed: slow start should pause
    #[allow(unused_variables)]
    fn on_undecided(&mut self, is_undecided: bool) {}

    /// How many congestion events were spurious
    fn undos(&self) -> u64 {
        0
    }
""",
    ),
    # The settings.
    Edit(
        "config/transport.rs",
        "/// Parameters governing the core QUIC state machine",
        "before",
        """/// How lost packets are detected
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossDetection {
    /// By `packet_threshold` and `time_threshold` (RFC 9002)
    Rfc9002,
    /// By how late packets arrive; they are waited for during at most this many smoothed round-trip times
    Recovery {
        /// The number of round-trip times
        max_wait: u32,
    },
}
""",
    ),
    Edit(
        "config/transport.rs",
        "pub(crate) packet_threshold: u32,",
        "after",
        "pub(crate) loss_detection: LossDetection,",
    ),
    Edit("config/transport.rs", "packet_threshold: 3,", "after", "loss_detection: LossDetection::Rfc9002,"),
    Edit("config/transport.rs", "packet_threshold,", "after", "loss_detection,"),
    Edit(
        "config/transport.rs",
        '.field("packet_threshold", packet_threshold)',
        "after",
        '.field("loss_detection", loss_detection)',
    ),
    Edit(
        "config/transport.rs",
        "impl TransportConfig {",
        "after",
        """    /// How lost packets are detected
    pub fn loss_detection(&mut self, value: LossDetection) -> &mut Self {
        self.loss_detection = value;
        self
    }
""",
    ),
    Edit("config/mod.rs", "pub use transport::QlogConfig;", "after", "pub use transport::LossDetection;"),
    Edit("lib.rs", "pub use config::QlogConfig;", "after", "pub use config::LossDetection;"),
    # A path has a detector.
    Edit(
        "connection/paths.rs", "pub(super) in_flight: InFlight,", "after", "pub(super) recovery: super::recovery::Seam,"
    ),
    Edit(
        "connection/paths.rs",
        "in_flight: InFlight::new(),",
        "after",
        "recovery: super::recovery::Seam::new(now, config.loss_detection),",
        "allow_mtud: bool,",
    ),
    Edit(
        "connection/paths.rs",
        "in_flight: InFlight::new(),",
        "after",
        "recovery: prev.recovery.clone(),",
        "pub(super) fn from_previous(",
    ),
    Edit(
        "connection/paths.rs",
        "self.rtt = RttEstimator::new(config.initial_rtt);",
        "after",
        "self.recovery = self.recovery.on_new_path();",
    ),
    Edit(
        "connection/mod.rs",
        "new_path.challenge_pending = true;",
        "after",
        """if !(remote.is_ipv4() && remote.ip() == self.path.remote.ip()) {
            new_path.recovery = self.path.recovery.on_new_path();
        }""",
    ),
    Edit("connection/mod.rs", "mod mtud;", "before", "mod recovery;"),
    Edit(
        "connection/packet_builder.rs",
        ".sent(exact_number, packet, &mut conn.spaces[space_id]);",
        "after",
        "if conn.has_seam(space_id) { conn.path.recovery.on_sent(exact_number); }",
    ),
    # ACKs.
    Edit(
        "connection/mod.rs",
        "self.packet_number_filter.check_ack(space, range.clone())?;",
        "after",
        "if self.has_seam(space) { self.path.recovery.on_acked_range(now, range.clone()); }",
    ),
    Edit(
        "connection/mod.rs",
        "if newly_acked.is_empty() {",
        "replace",
        """if newly_acked.is_empty() && self.has_seam(space) {
            // It may acknowledge packets that were declared lost.
            self.decide(now);
            self.set_loss_detection_timer(now);
        }
        if newly_acked.is_empty() {""",
    ),
    Edit(
        "connection/mod.rs",
        "ack_eliciting_acked |= info.ack_eliciting;",
        "after",
        "if self.has_seam(space) { self.path.recovery.on_acked(now, packet); }",
    ),
    Edit(
        "connection/mod.rs",
        "self.path.rtt.update(ack_delay, rtt);",
        "after",
        "if self.has_seam(space) { self.path.recovery.on_rtt(self.path.rtt.get(), rtt); }",
    ),
    Edit(
        "connection/mod.rs",
        "Ok(true) => {",
        "before",
        """Ok(true) if self.has_seam(space) => {
                let largest = self.spaces[space].largest_acked_packet.unwrap_or(0);
                if self.path.recovery.on_marked(largest) {
                    self.stats.path.congestion_events += 1;
                    self.path.congestion.on_reduction(now, largest);
                }
            }""",
        "fn process_ecn(",
    ),
    # Losses.
    Edit(
        "connection/mod.rs",
        "fn detect_lost_packets(&mut self, now: Instant, pn_space: SpaceId, due_to_ack: bool) {",
        "replace",
        """fn has_seam(&self, space: SpaceId) -> bool {
        space == SpaceId::Data && self.config.loss_detection != crate::config::LossDetection::Rfc9002
    }

    fn decide(&mut self, now: Instant) {
        let decision = self.path.recovery.decide(now);
        for &event in decision.undone() {
            self.path.congestion.on_spurious(now, event);
        }
        if let Some(event) = decision.reduce {
            self.stats.path.congestion_events += 1;
            self.path.congestion.on_reduction(now, event);
        }
        self.path.congestion.on_undecided(self.path.recovery.is_undecided());
        let again = self.path.recovery.time(decision.next);
        let space = &mut self.spaces[SpaceId::Data];
        space.loss_time = space.loss_time.into_iter().chain(again).min();
    }

    fn detect_lost_packets(&mut self, now: Instant, pn_space: SpaceId, due_to_ack: bool) {
        let has_seam = self.has_seam(pn_space);""",
    ),
    Edit(
        "connection/mod.rs",
        "if packet_too_old || largest_acked_packet >= packet + packet_threshold {",
        "replace",
        """let seam = has_seam.then(|| self.path.recovery.loss_time(packet, info.time_sent));
            let is_lost = match seam {
                Some(at) => at.is_some_and(|at| at <= now),
                None => packet_too_old || largest_acked_packet >= packet + packet_threshold,
            };
            if let Some(at) = seam.filter(|_| !is_lost) {
                space.loss_time = at;
                break;
            }
            if is_lost {""",
    ),
    Edit(
        "connection/mod.rs",
        "self.remove_in_flight(&info);",
        "before",
        "if has_seam && info.ack_eliciting { self.path.recovery.on_lost(now, packet); }",
        "emit_packet_lost",
    ),
    Edit(
        "connection/mod.rs",
        "if lost_ack_eliciting {",
        "replace",
        """if has_seam && lost_ack_eliciting && in_persistent_congestion {
                self.path.recovery.settle();
            }
            if lost_ack_eliciting && (!has_seam || in_persistent_congestion) {""",
    ),
    Edit(
        "connection/mod.rs",
        "// Handle a lost MTU probe",
        "before",
        "if has_seam { self.decide(now); }",
    ),
    # Numbers with room for packets that are later than those outstanding.
    Edit(
        "connection/packet_builder.rs",
        "let space = &mut conn.spaces[space_id];",
        "before",
        "let has_seam = conn.has_seam(space_id);",
    ),
    Edit(
        "connection/packet_builder.rs",
        "let number = PacketNumber::new(exact_number, space.largest_acked_packet.unwrap_or(0));",
        "after",
        """let number = match number {
            PacketNumber::U8(_) if has_seam => PacketNumber::U16(exact_number as u16),
            number => number,
        };""",
    ),
    Edit(
        "connection/mod.rs",
        "1 + self.rem_cids.active().len() + pn_len + self.tag_len_1rtt()",
        "before",
        "let pn_len = if self.has_seam(SpaceId::Data) { pn_len.max(2) } else { pn_len };",
    ),
    # The timer of losses, or of the probe if that is earlier.
    Edit(
        "connection/mod.rs",
        "if let Some((_, pn_space)) = self.loss_time_and_space() {",
        "replace",
        """let due = self.loss_time_and_space();
        if let Some((_, pn_space)) = due.filter(|(time, space)| *time <= now || !self.has_seam(*space)) {""",
    ),
    Edit(
        "connection/mod.rs",
        "if let Some((loss_time, _)) = self.loss_time_and_space() {",
        "replace",
        "if let Some((loss_time, space)) = self.loss_time_and_space() {",
    ),
    Edit(
        "connection/mod.rs",
        "self.timers.set(Timer::LossDetection, loss_time);",
        "replace",
        """let probes = self.has_seam(space)
                && self.path.in_flight.ack_eliciting > 0
                && !self.path.anti_amplification_blocked(1);
            let probe = if probes { self.pto_time_and_space(now) } else { None };
            let at = probe.map_or(loss_time, |(time, _)| time.min(loss_time));
            self.timers.set(Timer::LossDetection, at);""",
    ),
]

RECEIVER = [
    Edit(
        "connection/spaces.rs",
        "pub(super) struct Dedup {",
        "replace",
        "pub(super) use super::numbers::Dedup;\n#[cfg(any())]\npub(super) struct Narrow {",
    ),
    Edit("connection/spaces.rs", "impl Dedup {", "replace", "#[cfg(any())]\nimpl Narrow {"),
    Edit("connection/spaces.rs", "const MAX_ACK_BLOCKS: usize = 64;", "replace", "const MAX_ACK_BLOCKS: usize = 2048;"),
    Edit("connection/spaces.rs", "ranges: ArrayRangeSet,", "after", "recent: super::numbers::Recent,"),
    Edit(
        "connection/spaces.rs", "ranges: ArrayRangeSet::default(),", "after", "recent: super::numbers::Recent::new(),"
    ),
    Edit("connection/spaces.rs", "self.ranges.insert_one(packet);", "after", "self.recent.push(packet);"),
    Edit(
        "connection/spaces.rs",
        "/// Returns the set of currently pending ACK ranges",
        "before",
        """/// The highest ranges, and those of the packets that arrived last
    pub(super) fn selected(&self, highest: usize) -> ArrayRangeSet {
        let mut selected = ArrayRangeSet::new();
        for range in self.recent.select(self.ranges.iter(), self.ranges.len(), highest) {
            selected.push(range);
        }
        selected
    }
""",
    ),
    Edit(
        "range_set/array_range_set.rs",
        "pub fn insert_one(&mut self, x: u64) -> bool {",
        "before",
        """/// Add a range above all others
    pub fn push(&mut self, x: Range<u64>) {
        self.0.push(x);
    }
""",
    ),
    Edit("connection/mod.rs", "mod mtud;", "before", "mod numbers;"),
    Edit(
        "connection/mod.rs",
        "frame::Ack::encode(delay as _, space.pending_acks.ranges(), ecn, buf);",
        "replace",
        """let mut highest = space.pending_acks.ranges().len().min(512);
        frame::Ack::encode(delay as _, &space.pending_acks.selected(highest), ecn, buf);
        while buf.len() > max_size && highest > 1 {
            highest = highest * 3 / 4;
            buf.truncate(no_acks_len);
            frame::Ack::encode(delay as _, &space.pending_acks.selected(highest), ecn, buf);
        }""",
    ),
    Edit(
        "connection/mod.rs",
        "zero_rtt_crypto: Option<ZeroRttCrypto>,",
        "after",
        "early: Vec<(SocketAddr, Option<EcnCodepoint>, Packet, Option<u64>)>,",
    ),
    Edit("connection/mod.rs", "zero_rtt_crypto: None,", "after", "early: Vec::new(),"),
    Edit(
        "connection/mod.rs",
        'trace!("dropping short packet during handshake");',
        "replace",
        """if self.early.len() < 32 {
                        self.early.push((remote, ecn, packet, number));
                    }""",
    ),
    Edit(
        "connection/mod.rs",
        "self.process_decrypted_packet(now, remote, number, packet)",
        "replace",
        """let mut result = self.process_decrypted_packet(now, remote, number, packet);
                    if !self.state.is_handshake() {
                        for (remote, ecn, packet, number) in mem::take(&mut self.early) {
                            if result.is_err() || self.state.is_closed() {
                                break;
                            }
                            let spin = matches!(packet.header, Header::Short { spin: true, .. });
                            self.on_packet_authenticated(now, SpaceId::Data, ecn, number, spin, true);
                            result = self.process_decrypted_packet(now, remote, number, packet);
                        }
                    }
                    result""",
    ),
    Edit(
        "connection/assembler.rs",
        "if over_allocation > threshold || self.data.len() > COMPACT_THRESHOLD {",
        "replace",
        "if over_allocation > threshold || self.data.len() > COMPACT_THRESHOLD.max(self.buffered / 256) {",
    ),
    Edit(
        "connection/assembler.rs",
        "if self.data.len() > MAX_CHUNKS {",
        "replace",
        "if self.data.len() > MAX_CHUNKS.max(self.buffered / 512) {",
    ),
]

ENDS = {"sender": SENDER, "receiver": RECEIVER, "both": SENDER + RECEIVER}


def published() -> Path:
    """Return the folder of the crate as cargo has downloaded it."""
    command = ["cargo", "metadata", "--format-version", "1"]
    found = subprocess.run(command, cwd=CRATE, check=True, stdout=subprocess.PIPE, text=True).stdout
    packages = json.loads(found)["packages"]
    found = [package for package in packages if (package["name"], package["version"]) == ("quinn-proto", VERSION)]
    return Path(found[0]["manifest_path"]).parent


def changed(text: str, edit: Edit) -> str:
    """Return the text of a file after an edit."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if line.strip() == edit.line]
    if edit.occurrence != "only":
        first = next((i for i, line in enumerate(lines) if edit.occurrence in line), len(lines))
        places = [i for i in places if i > first][:1]
    if len(places) != 1:
        sys.exit(f"{edit.file}: `{edit.line}` occurs {len(places)} times; the edits are for quinn-proto {VERSION}")
    i = places[0]
    kept = [] if edit.how == "replace" else [lines[i]]
    lines[i : i + 1] = [*kept, edit.text] if edit.how == "after" else [edit.text, *kept]
    return "\n".join(lines)


def make(crate: Path, ends: str) -> None:
    """Write the changed crate."""
    shutil.rmtree(crate, ignore_errors=True)
    shutil.copytree(published(), crate)
    for edit in ENDS[ends]:
        file = crate / "src" / edit.file
        file.write_text(changed(file.read_text(), edit))
    for file in (CRATE / "seam").iterdir():
        shutil.copy(file, crate / "src/connection")
    if ends != "receiver":
        manifest = crate / "Cargo.toml"
        dependency = f'\n[dependencies.reknit-recovery]\npath = "{ROOT}/crates/recovery"\n'
        manifest.write_text(manifest.read_text() + dependency)


def build(ends: str, target: Path) -> Path:
    """Build the program with the changed crate. `Cargo.lock` names the published one before and afterwards."""
    crate = target / f"quinn-proto-{ends}"
    make(crate, ends)
    lock = CRATE / "Cargo.lock"
    text = lock.read_text()
    features = [] if ends == "receiver" else ["--features", "seam"]
    patch = ["--config", f'patch.crates-io.quinn-proto.path="{crate}"']
    try:
        command = ["cargo", "build", "--release", *features, *patch, "--target-dir", str(target)]
        subprocess.run(command, cwd=CRATE, check=True)
    finally:
        lock.write_text(text)
    program = target / "release/reknit-transports"
    return program.rename(program.with_name(f"{program.name}-{ends}"))


def main() -> None:
    """Make the crate, and build the program with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ends", choices=ENDS)
    ends = parser.parse_args().ends
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target/transports")
    print(build(ends, target))


if __name__ == "__main__":
    main()
