#!/usr/bin/env python3
"""Captures transfers between two Linux kernels at the sender, the receiver and in between, for study/results/truth.md.

    sudo study/benches/truth.py captures     # in real time, 10 s each

The path has two parts, emulated one inside the other. The sender uses CUBIC and then BBR. Captures have the names
PATH-CONTROL-sender.pcapng, -middle.pcapng and -receiver.pcapng.
"""

import argparse
import itertools
import os
import subprocess
import sys
from pathlib import Path

from fidelity import REKNIT

# The part of the path next to the sender, and the part next to the receiver.
PATHS = [
    ("bursty-loss", "displaced"),
    ("displaced", "lossy"),
    ("duplicates", "two-paths-50ms"),
    ("late-duplicates", "lossy"),
    ("gvisor-30ms", "gcp-vm"),
    ("lossy", "random-delay"),
    ("random-delay", "lossy"),
    ("reordered-and-lossy", "wireless-arq"),
    ("rr-tcp", "duplicates"),
    ("two-paths-50ms", "lossy"),
    ("two-paths-200ms", "bursty-loss"),
    ("wireless-arq", "reordered-and-lossy"),
]
CONTROLS = ["cubic", "bbr"]
PORT = 5001
# Both ends. The sender waits until the receiver has everything, so that no packet is under way at the end.
SINK = f"""
import socket
listener = socket.create_server(("", {PORT}))
peer, _ = listener.accept()
while peer.recv(1 << 20):
    pass
peer.close()
"""
SOURCE = f"""
import socket, sys, time
host, control, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
peer = socket.socket()
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
peer.connect((host, {PORT}))
end = time.monotonic() + seconds
while time.monotonic() < end:
    peer.sendall(bytes(1 << 14))
peer.shutdown(socket.SHUT_WR)
peer.recv(1)
"""


def transfer(name: str, parts: tuple[str, str], control: str, args: argparse.Namespace) -> None:
    """Run one transfer over both parts of the path."""
    near, far = parts
    capture = {place: str(args.captures / f"{name}-{place}.pcapng") for place in ("sender", "middle", "receiver")}
    source = [sys.executable, "-c", SOURCE, "10.77.0.1", control, args.seconds]
    inner = [str(REKNIT), "emulate", "--quiet", "--path", near, "--pcap", capture["sender"], "--", *source]
    outer = [str(REKNIT), "emulate", "--quiet", "--path", far, "--server", f'{sys.executable} -c "$SINK"']
    outer += ["--pcap", capture["middle"], "--pcap-outside", capture["receiver"], "--", *inner]
    subprocess.run(["chrt", "-r", "5", *outer], check=True, env={**os.environ, "SINK": SINK})


def main() -> None:
    """Run all transfers whose captures do not exist."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", type=Path, help="directory of the captures")
    parser.add_argument("--seconds", default="10")
    args = parser.parse_args()
    args.captures.mkdir(parents=True, exist_ok=True)
    for parts, control in itertools.product(PATHS, CONTROLS):
        name = f"{parts[0]}+{parts[1]}-{control}"
        if not (args.captures / f"{name}-sender.pcapng").exists():
            transfer(name, parts, control, args)
            print(name)


if __name__ == "__main__":
    main()
