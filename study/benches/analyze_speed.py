#!/usr/bin/env python3
"""How fast `reknit analyze` reads a large capture, beside tshark, and how much memory both need.

    cargo run --release -p reknit-study --bin truth -- --only reordered-and-lossy --variant linux --write captures
    mv captures/reordered-and-lossy-linux-sender.pcap base.pcap
    study/benches/analyze_speed.py base.pcap --streams 400
    study/benches/analyze_speed.py base.pcap --streams 100000 --concurrent 10000 --no-tshark

Writes a capture of --size bytes with Ethernet headers and a snaplen of 128: the given one repeated with other
addresses, --concurrent connections at a time, packet by packet in turn. It is deleted afterwards. Needs numpy.
"""

import argparse
import os
import re
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from fidelity import REKNIT

SNAPLEN = 128
ETHERNET = bytes(12) + b"\x08\x00"
RECORD = 16
# Where the addresses of both ends are in a record.
SOURCE, DESTINATION = RECORD + len(ETHERNET) + 12, RECORD + len(ETHERNET) + 16


def records(capture: Path, most: int) -> list[tuple[int, bytes]]:
    """Return the first packets as microseconds and records with Ethernet headers."""
    data = capture.read_bytes()
    found, at = [], 24
    while at < len(data) and len(found) < most:
        seconds, micros, captured, length = struct.unpack_from("<4I", data, at)
        packet = ETHERNET + data[at + RECORD : at + RECORD + captured]
        # The payload that a snaplen of 128 would have left.
        packet = (packet + bytes(SNAPLEN))[: min(SNAPLEN, length + len(ETHERNET))]
        header = struct.pack("<4I", 0, 0, len(packet), length + len(ETHERNET))
        found.append((seconds * 1_000_000 + micros, header + packet))
        at += RECORD + captured
    return found


def finished(packets: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the packets without data that is not acknowledged at the end: it would count as in flight for ever."""

    def number(record: bytes, at: int) -> int:
        return int.from_bytes(record[SOURCE + at : SOURCE + at + 4])

    first = packets[0][1]
    acked = max(number(record, 16) for _, record in packets if record[SOURCE + 3] != first[SOURCE + 3])
    return [
        (at, record) for at, record in packets if record[SOURCE + 3] != first[SOURCE + 3] or number(record, 12) < acked
    ]


def write(out: Path, args: argparse.Namespace) -> int:
    """Write the capture; return the number of packets."""
    packets = records(args.capture, 1 << 30)
    share = args.size // args.streams
    total = np.cumsum([len(record) for _, record in packets])
    packets = finished(packets[: max(int(np.searchsorted(total, share)), 8)])
    span = packets[-1][0] - packets[0][0] + 1_000_000
    with out.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAPLEN, 1))
        for group in range(0, args.streams, args.concurrent):
            numbers = np.arange(group, min(group + args.concurrent, args.streams), dtype=">u4")
            for micros, record in packets:
                rows = np.tile(np.frombuffer(record, np.uint8), (len(numbers), 1))
                now = 1_700_000_000_000_000 + micros + group // args.concurrent * span
                rows[:, :8] = np.frombuffer(struct.pack("<2I", now // 1_000_000, now % 1_000_000), np.uint8)
                for at in (SOURCE, DESTINATION):
                    # 10.0.0.1 and 10.0.0.2 become other addresses of the same network for each connection.
                    end = int.from_bytes(record[at + 3 : at + 4]) - 1
                    rows[:, at : at + 4] = (0x0A000000 + 2 * numbers + end).astype(">u4").view(np.uint8).reshape(-1, 4)
                file.write(rows.tobytes())
    return len(packets) * args.streams


def timed(command: list[str]) -> tuple[float, float, int]:
    """Return the time of a command, of its processors, and its memory: seconds, seconds, kB."""
    command = ["/usr/bin/time", "-v", *command]
    finished = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    text = finished.stderr
    clock = re.search(r"Elapsed.*: (?:(\d+):)?(\d+):([\d.]+)\n", text)
    user, system = (float(re.search(rf"{name} time \(seconds\): ([\d.]+)", text)[1]) for name in ("User", "System"))
    seconds = int(clock[1] or 0) * 3600 + int(clock[2]) * 60 + float(clock[3])
    return seconds, user + system, int(re.search(r"Maximum resident set size \(kbytes\): (\d+)", text)[1])


def main() -> None:
    """Write the capture, and time the programs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path)
    parser.add_argument("--size", type=float, default=1e9, help="bytes")
    parser.add_argument("--streams", type=int, default=400)
    parser.add_argument("--concurrent", type=int, default=40)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--no-tshark", action="store_true")
    parser.add_argument("--folder", default=None, help="where the capture is written")
    args = parser.parse_args()
    args.size = int(args.size)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        big = Path(folder) / "big.pcap"
        packets = write(big, args)
        size = big.stat().st_size
        print(f"{size / 1e9:.2f} GB, {packets} packets, {args.streams} connections, {args.concurrent} at a time")
        commands = {"cat": ["cat", str(big)], "reknit analyze": [str(REKNIT), "analyze", str(big)]}
        if not args.no_tshark:
            commands["tshark -z conv,tcp"] = ["tshark", "-r", str(big), "-q", "-z", "conv,tcp"]
            commands["tshark -z expert"] = ["tshark", "-r", str(big), "-q", "-z", "expert"]
        for name, command in commands.items():
            runs = args.runs if "tshark" not in name else 1
            times = [timed(command) for _ in range(runs)]
            clock, cpu, memory = (min(one[i] for one in times) for i in range(3))
            print(
                f"{name:20} {clock:7.2f} s, {cpu:7.2f} s of processor, {size / max(cpu, 1e-3) / 1e9:5.2f} GB/s, "
                f"{packets / max(cpu, 1e-3) / 1e6:6.2f} million packets/s per core, {memory / 1e3:6.0f} MB",
                flush=True,
            )
        os.sync()


if __name__ == "__main__":
    main()
