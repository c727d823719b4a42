#!/usr/bin/env python3
"""Live: many connections, and hostile ones beside honest ones, through `reknit proxy` and `reknit shield`.

    make build && sudo python study/benches/crowd.py              # about 10 minutes

Client, gateway and server are in network namespaces (benches/proxy.py). Each of 100 honest connections asks for 10 kB
five times a second. Beside them is one hostile peer at a time; what the honest ones receive is compared with what they
receive alone.
"""

import argparse
import asyncio
import contextlib
import random
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from proxy import ADDRESS, CLIENT, GATEWAY, REKNIT, SERVER, inside, namespaces, process

HONEST, CHUNK, PAUSE = 100, 10_000, 0.2
# What the server writes at a time.
PART = 64 << 10
# Ports of hostile peers, which the client's kernel does not answer.
PORTS = range(61_000, 61_100)
OURS = "10.201.0.2"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send as many bytes as each line asks for."""
    with contextlib.suppress(ConnectionError, ValueError, asyncio.IncompleteReadError):
        while line := await reader.readline():
            if line.strip().isdigit():
                for start in range(0, int(line), PART):
                    writer.write(bytes(min(PART, int(line) - start)))
                    await writer.drain()
    writer.close()


async def serve() -> None:
    """Serve until the process is ended."""
    server = await asyncio.start_server(answer, ADDRESS, 80, backlog=4096)
    print("serving", file=sys.stderr, flush=True)
    await server.serve_forever()


async def ask(until: float, count: int) -> tuple[int, int]:
    """Keep connections busy. Return how many chunks arrived, and how many connections failed."""
    arrived = failed = 0

    async def one(delay: float) -> None:
        nonlocal arrived, failed
        try:
            await asyncio.sleep(delay)
            reader, writer = await asyncio.wait_for(asyncio.open_connection(ADDRESS, 80), 20)
            while time.monotonic() < until:
                writer.write(b"%d\n" % CHUNK)
                await asyncio.wait_for(reader.readexactly(CHUNK), 20)
                arrived += 1
                await asyncio.sleep(PAUSE)
            writer.close()
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            failed += 1

    await asyncio.gather(*(one(i * 0.002) for i in range(count)))
    return arrived, failed


async def idle(count: int) -> tuple[int, int]:
    """Open connections that say nothing. Return how many answer at the end, and the memory of the tool in kB."""
    found = []
    for _ in range(count // 100):
        pairs = await asyncio.gather(
            *(asyncio.wait_for(asyncio.open_connection(ADDRESS, 80), 20) for _ in range(100)), return_exceptions=True
        )
        found += [pair for pair in pairs if not isinstance(pair, BaseException)]
    for _, writer in found:
        writer.write(b"1\n")
    answers = await asyncio.gather(
        *(asyncio.wait_for(reader.readexactly(1), 30) for reader, _ in found), return_exceptions=True
    )
    return sum(not isinstance(one, BaseException) for one in answers), memory()


def memory() -> int:
    """Return the resident memory of all processes of the tool in kB."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            text, command = status.read_text(), status.with_name("cmdline").read_bytes()
            if command.startswith(bytes(REKNIT)) and (line := text.partition("VmRSS:")[2]):
                total += int(line.split()[0])
    return total


class Raw:
    """A TCP client that does as it likes."""

    def __init__(self, port: int) -> None:
        """Open a connection from this port."""
        self.port, self.seq, self.ack, self.value = port, random.getrandbits(31), 0, 1
        self.sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
        self.receiver = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
        self.receiver.settimeout(2)
        self.send(0x02, options=b"\x02\x04\x05\xb4\x04\x02\x08\x0a" + struct.pack("!II", 1, 0) + b"\x01\x03\x03\x07")
        self.seq += 1
        self.ack = self.receive()[0] + 1
        self.send(0x10)

    def send(self, flags: int, data: bytes = b"", options: bytes = b"", window: int = 65535, **other: int) -> None:
        """Send a segment."""
        seq, ack = other.get("seq", self.seq), other.get("ack", self.ack)
        options += b"\x01" * (-len(options) % 4)
        offset = (20 + len(options)) // 4 << 4
        head = struct.pack("!HHIIBBHHH", self.port, 80, seq % 2**32, ack % 2**32, offset, flags, window, 0, 0)
        segment = head + options + data
        pseudo = socket.inet_aton(OURS) + socket.inet_aton(ADDRESS) + struct.pack("!BBH", 0, 6, len(segment))
        padded = pseudo + segment + bytes(len(segment) % 2)
        total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
        total = (total & 0xFFFF) + (total >> 16)
        total = (total & 0xFFFF) + (total >> 16)
        self.sender.sendto(segment[:16] + struct.pack("!H", ~total & 0xFFFF) + segment[18:], (ADDRESS, 0))

    def stamps(self, value: int, echo: int) -> bytes:
        """Return the timestamps option."""
        return b"\x01\x01\x08\x0a" + struct.pack("!II", value % 2**32, echo % 2**32)

    def receive(self) -> tuple[int, int]:
        """Return sequence number and length of the next segment."""
        while True:
            packet = self.receiver.recv(65_535)
            head = packet[(packet[0] & 15) * 4 :]
            if struct.unpack("!HH", head[:4]) == (80, self.port):
                return struct.unpack("!I", head[4:8])[0], len(head) - (head[12] >> 4) * 4


def syn_flood(stop: threading.Event) -> None:
    """Send SYNs that are not followed by anything."""
    raw = Raw(PORTS[0])
    while not stop.is_set():
        raw.port = random.choice(PORTS)
        for _ in range(10):
            raw.seq = random.getrandbits(32)
            raw.send(0x02, options=b"\x02\x04\x05\xb4")
        time.sleep(0.001)


def slow_reader(stop: threading.Event) -> None:
    """Ask for much on several connections, and read nothing."""
    readers = [socket.create_connection((ADDRESS, 80)) for _ in range(20)]
    for reader in readers:
        reader.sendall(b"100000000\n")
    stop.wait()


def acknowledging(stop: threading.Event, answer_with: Callable[[Raw, int], None]) -> None:
    """Ask for much, and answer with strange acknowledgments 1000 times a second."""
    raw = Raw(PORTS[1])
    raw.send(0x18, b"100000000\n", options=raw.stamps(2, 0))
    raw.seq += 10
    raw.receiver.settimeout(0.001)
    end = raw.ack
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            seq, length = raw.receive()
            end = max(end, seq + length)
        answer_with(raw, end)


def sack_storm(raw: Raw, end: int) -> None:
    """Send SACK blocks at random."""
    blocks = b"".join(
        struct.pack("!II", a % 2**32, (a + 700) % 2**32) for a in random.sample(range(end, end + 90_000), 3)
    )
    raw.send(0x10, options=raw.stamps(3, 0) + b"\x01\x01\x05\x1a" + blocks)


def tiny_windows(raw: Raw, end: int) -> None:
    """Send a window of one byte."""
    raw.ack = end
    raw.send(0x10, options=raw.stamps(3, 0), window=1)


def optimistic(raw: Raw, end: int) -> None:
    """Acknowledge what has not arrived."""
    raw.send(0x10, options=raw.stamps(3, 0), ack=end + 20_000)


def forged(raw: Raw, end: int) -> None:
    """Send timestamps at random."""
    raw.ack = end
    raw.send(0x10, options=raw.stamps(random.getrandbits(32), random.getrandbits(32)))


def gaps(stop: threading.Event) -> None:
    """Send data of which every other segment is missing."""
    raw = Raw(PORTS[2])
    sent = 0
    while not stop.is_set():
        raw.send(0x10, b"x" * 500, seq=raw.seq + 500 + sent % 60_000, options=raw.stamps(3, 0))
        sent += 1000
        time.sleep(0.001)


HOSTILE = {
    "none": lambda stop: stop.wait(),
    "SYN flood": syn_flood,
    "slow reader": slow_reader,
    "SACK storm": lambda stop: acknowledging(stop, sack_storm),
    "tiny windows": lambda stop: acknowledging(stop, tiny_windows),
    "optimistic ACKs": lambda stop: acknowledging(stop, optimistic),
    "forged timestamps": lambda stop: acknowledging(stop, forged),
    "gaps without end": gaps,
}


def client(what: str, seconds: float) -> str:
    """Run a client in this namespace. Return what it has found."""
    if what == "idle":
        return "{} of 10000 answered, {} kB".format(*asyncio.run(idle(10_000)))
    if what == "many":
        return "{} chunks, {} failed".format(*asyncio.run(ask(time.monotonic() + seconds, 1000)))
    stop = threading.Event()
    threading.Thread(target=HOSTILE[what], args=[stop], daemon=True).start()
    time.sleep(1)
    arrived, failed = asyncio.run(ask(time.monotonic() + seconds, HONEST))
    stop.set()
    return f"{arrived} {failed}"


@contextlib.contextmanager
def tool(name: str) -> Iterator[None]:
    """Run the proxy or the shield on the gateway."""
    command = [str(REKNIT), "proxy", "--listen", f"{ADDRESS}:80", "--untouched", "0"]
    if name == "shield":
        command = [str(REKNIT), "shield", "--interface", "side1,side2", "--mode", "resequence"]
    ready = "event=listening" if name == "proxy" else "event=started"
    limits = ["--max-connections", "20000"] if name == "proxy" else []
    with process(inside(GATEWAY, *command, *limits), ready):
        yield


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="beside each hostile peer")
    parser.add_argument("--long", type=float, default=60, help="with 1000 connections")
    args = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    def run(what: str, seconds: float) -> str:
        command = inside(CLIENT, sys.executable, __file__, "client", what, str(seconds))
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    with namespaces(), process(inside(SERVER, sys.executable, __file__, "serve"), "serving"):
        ports = f"{PORTS[0]}:{PORTS[-1]}"
        drop = f"-A OUTPUT -p tcp --sport {ports} --tcp-flags RST RST -j DROP"
        for name in ("proxy", "shield"):
            with tool(name):
                print(f"{name}: 1000 connections: {run('many', args.long)}; idle: {run('idle', 0)}", flush=True)
        subprocess.run(inside(CLIENT, "iptables", *drop.split()), check=True)
        for name in ("proxy", "shield"):
            with tool(name):
                alone = None
                for what in HOSTILE:
                    arrived, failed = map(int, run(what, args.seconds).split())
                    alone = alone or arrived
                    print(f"{name}, {what}: {arrived} chunks ({arrived / alone:.2f}), {failed} failed", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            asyncio.run(serve())
        case ["client", what, seconds]:
            print(client(what, float(seconds)))
        case _:
            main()
