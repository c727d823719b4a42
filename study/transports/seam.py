"""Give the published quinn-proto a seam for loss detection, with `reknit-recovery` in it.

    python study/transports/seam.py [FOLDER]    build the simulator with it, in FOLDER or target/quinn-seam

It copies the crate from cargo's registry, makes the edits below, and adds the files of `seam/`. The text of the crate
itself is not part of this repository: an edit names a line that must occur exactly once. At the sender:

* With a packet threshold of `u32::MAX`, a path has a `Recovery`. It is told of ACKs and lost packets, and says when a
  packet is lost.
* The controller is told which congestion event a reduction belongs to, and which events were spurious.
* The timer can be that of the probe while packets are missing, because the wait may be longer than it.
* Packet numbers are encoded in at least two bytes: in one, the receiver cannot tell a packet that 128 others have
  overtaken.

At the receiver, what limits how late a packet may be:

* It remembers which of the last 4096 packets it has received, not 129: older ones count as duplicates.
* It reports up to 256 ranges, not 64.
* It accepts 32768 pieces of a stream with gaps between them, not 1024: with more, it closes the connection.
"""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
        "before",
        """
    /// The window is to be reduced for the congestion event `event`
    #[allow(unused_variables)]
    fn on_reduction(&mut self, now: Instant, event: u64) {
        self.on_congestion_event(now, now, false, 0);
    }

    /// The congestion event `event` was spurious
    #[allow(unused_variables)]
    fn on_spurious(&mut self, now: Instant, event: u64) {}

    /// How many congestion events were spurious
    fn undos(&self) -> u64 {
        0
    }
""",
    ),
    # A path has a detector.
    Edit(
        "connection/paths.rs", "pub(super) in_flight: InFlight,", "after", "pub(super) recovery: super::recovery::Seam,"
    ),
    Edit(
        "connection/paths.rs",
        "in_flight: InFlight::new(),",
        "after",
        "recovery: super::recovery::Seam::new(now),",
        "each",
    ),
    Edit("connection/mod.rs", "mod mtud;", "before", "mod recovery;"),
    # ACKs.
    Edit(
        "connection/mod.rs",
        "self.packet_number_filter.check_ack(space, range.clone())?;",
        "after",
        "if self.has_seam(space) { self.path.recovery.on_acked_range(now, range.clone()); }",
    ),
    Edit(
        "connection/mod.rs",
        "ack_eliciting_acked |= info.ack_eliciting;",
        "after",
        "if self.has_seam(space) && info.ack_eliciting { self.path.recovery.on_acked(now, packet); }",
    ),
    Edit(
        "connection/mod.rs",
        "self.path.rtt.update(ack_delay, rtt);",
        "after",
        """if self.has_seam(space) {
            let next = self.spaces[space].next_packet_number;
            self.path.recovery.on_rtt(self.path.rtt.get(), rtt, next);
        }""",
    ),
    # Losses.
    Edit(
        "connection/mod.rs",
        "fn detect_lost_packets(&mut self, now: Instant, pn_space: SpaceId, due_to_ack: bool) {",
        "replace",
        """fn has_seam(&self, space: SpaceId) -> bool {
        space == SpaceId::Data && self.config.packet_threshold == u32::MAX
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
        "if lost_ack_eliciting && (!has_seam || in_persistent_congestion) {",
    ),
    Edit(
        "connection/mod.rs",
        "// Handle a lost MTU probe",
        "before",
        """if has_seam {
            let decision = self.path.recovery.decide(now);
            for &event in decision.undone() {
                self.path.congestion.on_spurious(now, event);
            }
            if let Some(event) = decision.reduce {
                self.stats.path.congestion_events += 1;
                self.path.congestion.on_reduction(now, event);
            }
            let again = self.path.recovery.time(decision.next);
            let space = &mut self.spaces[pn_space];
            space.loss_time = space.loss_time.into_iter().chain(again).min();
        }
""",
    ),
    # Numbers with room for packets that are later than those outstanding.
    Edit(
        "connection/packet_builder.rs",
        "let number = PacketNumber::new(exact_number, space.largest_acked_packet.unwrap_or(0));",
        "replace",
        """let acked = space.largest_acked_packet.unwrap_or(0).saturating_sub(1 << 14);
        let number = PacketNumber::new(exact_number, acked);""",
    ),
    Edit(
        "connection/mod.rs",
        "self.spaces[SpaceId::Data].largest_acked_packet.unwrap_or(0),",
        "replace",
        "self.spaces[SpaceId::Data].largest_acked_packet.unwrap_or(0).saturating_sub(1 << 14),",
    ),
    # The timer of losses, or of the probe if that is earlier.
    Edit(
        "connection/mod.rs",
        "if let Some((_, pn_space)) = self.loss_time_and_space() {",
        "replace",
        "if let Some((_, pn_space)) = self.loss_time_and_space().filter(|(time, _)| *time <= now) {",
    ),
    Edit(
        "connection/mod.rs",
        "self.timers.set(Timer::LossDetection, loss_time);",
        "replace",
        """let is_probing = self.path.in_flight.ack_eliciting > 0;
            let probe = if is_probing { self.pto_time_and_space(now).map(|(time, _)| time) } else { None };
            self.timers.set(Timer::LossDetection, probe.map_or(loss_time, |time| time.min(loss_time)));""",
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
    Edit("connection/spaces.rs", "const MAX_ACK_BLOCKS: usize = 64;", "replace", "const MAX_ACK_BLOCKS: usize = 256;"),
    Edit("connection/mod.rs", "mod mtud;", "before", "mod numbers;"),
    Edit(
        "connection/assembler.rs", "const MAX_CHUNKS: usize = 1024;", "replace", "const MAX_CHUNKS: usize = 32 * 1024;"
    ),
]


def published() -> Path:
    """Return the folder of the crate as cargo has downloaded it."""
    command = ["cargo", "metadata", "--format-version", "1"]
    found = subprocess.run(command, cwd=ROOT / "study/transports", check=True, stdout=subprocess.PIPE, text=True).stdout
    packages = json.loads(found)["packages"]
    found = [package for package in packages if (package["name"], package["version"]) == ("quinn-proto", VERSION)]
    return Path(found[0]["manifest_path"]).parent


def changed(text: str, edit: Edit) -> str:
    """Return the text of a file after an edit."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if line.strip() == edit.line]
    if edit.occurrence not in ("only", "each"):
        first = next(i for i, line in enumerate(lines) if edit.occurrence in line)
        places = [i for i in places if i > first][:1]
    if not places or (edit.occurrence == "only" and len(places) > 1):
        sys.exit(f"{edit.file}: `{edit.line}` occurs {len(places)} times; the edits are for quinn-proto {VERSION}")
    for i in reversed(places):
        kept = [] if edit.how == "replace" else [lines[i]]
        lines[i : i + 1] = [*kept, edit.text] if edit.how == "after" else [edit.text, *kept]
    return "\n".join(lines)


def make(folder: Path) -> Path:
    """Write the changed crate."""
    crate = folder / "quinn-proto"
    shutil.rmtree(crate, ignore_errors=True)
    shutil.copytree(published(), crate)
    for edit in SENDER + RECEIVER:
        file = crate / "src" / edit.file
        file.write_text(changed(file.read_text(), edit))
    for file in (ROOT / "study/transports/seam").iterdir():
        shutil.copy(file, crate / "src/connection")
    manifest = crate / "Cargo.toml"
    dependency = f'\n[dependencies.reknit-recovery]\npath = "{ROOT}/crates/recovery"\n'
    manifest.write_text(manifest.read_text() + dependency)
    return crate


def workspace(folder: Path) -> Path:
    """Write a manifest of the program that uses the changed crate."""
    transports = ROOT / "study/transports"
    text = (transports / "Cargo.toml").read_text().replace('path = "../../', f'path = "{ROOT}/')
    text = text.replace('members = ["live"]\n', "")
    text = text.replace("publish = false\n", f'publish = false\nbuild = "{transports}/build.rs"\n')
    text += f'\n[[bin]]\nname = "reknit-transports"\npath = "{transports}/src/main.rs"\n'
    text += '\n[patch.crates-io]\nquinn-proto = { path = "quinn-proto" }\n'
    (folder / "Cargo.toml").write_text(text)
    shutil.copy(transports / "Cargo.lock", folder)
    return folder / "Cargo.toml"


def main() -> None:
    """Make the crate, and build the program with it."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/quinn-seam").resolve()
    make(folder)
    build = ["cargo", "build", "--release", "--features", "seam", "--manifest-path", str(workspace(folder))]
    subprocess.run([*build, "--target-dir", str(folder / "target")], check=True)
    print(folder / "target/release/reknit-transports")


if __name__ == "__main__":
    main()
