"""Reads what arrived from the captures that `reknit compare --pcap` writes."""

import struct
from collections.abc import Iterator
from pathlib import Path

INTERFACE, PACKET = 1, 6


def packets(file: Path) -> Iterator[tuple[float, bytes]]:
    """Yield time in seconds and bytes of each packet of a pcapng file in this machine's byte order."""
    data = file.read_bytes()
    at, units = 0, 1e6
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == INTERFACE:
            units = resolution(data[at + 16 : at + length - 4])
        elif kind == PACKET:
            _, high, low, captured, _ = struct.unpack_from("<IIIII", data, at + 8)
            yield ((high << 32) + low) / units, data[at + 28 : at + 28 + captured]
        at += length


def resolution(options: bytes) -> float:
    """Return units per second of an interface's timestamps (`if_tsresol`, 9)."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == 9:
            return 10.0 ** options[at + 4]
        at += 4 + (length + 3) // 4 * 4
    return 1e6


def received(file: Path, until: float) -> int:
    """Bytes of data that arrived before `until`, each once, in order or not. The capture was made at the receiver."""
    seen: dict[int, int] = {}
    first = None
    for time, packet in packets(file):
        header = (packet[0] & 15) * 4
        port, _, seq = struct.unpack_from("!HHI", packet, header)
        length = struct.unpack_from("!H", packet, 2)[0] - header - (packet[header + 12] >> 4) * 4
        first = port if first is None else first
        if port == first and length > 0 and time <= until:
            seen[seq] = max(length, seen.get(seq, 0))
    return sum(seen.values())
