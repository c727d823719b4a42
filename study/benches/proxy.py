#!/usr/bin/env python3
"""Live: 10 MB from a kernel to a kernel over an emulated path, with and without `reknit proxy` in between.

    make build && sudo python study/benches/proxy.py > study/results/proxy.md

A client, a gateway and a server are in network namespaces that are removed at the end; `reknit emulate` in the client's
namespace is the path. A transfer ends after a minute at the latest. Takes 40 minutes; the machine must not be busy.
"""

import contextlib
import functools
import hashlib
import http.server
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "study"))

from reknit_study._generated import generated  # noqa: E402 - the study need not be installed

REKNIT = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target") / "release/reknit"
PATHS = ["two-paths-200ms", "101-15", "random-delay", "lossy", "clean"]
SIZE, LIMIT, REPEAT = 10_000_000, 60, 5
CLIENT, GATEWAY, SERVER = "reknit-client", "reknit-gateway", "reknit-server"
ADDRESS = "10.202.0.2"


@dataclass
class Sender:
    """A congestion control of the server, its degree of reordering, and the variant of the proxy, if there is one."""

    name: str
    congestion_control: str
    reordering: int = 3
    variant: str = ""


SENDERS = [
    Sender("kernel, CUBIC", "cubic"),
    Sender("kernel, BBR", "bbr"),
    Sender("kernel, BBR, reordering 300", "bbr", 300),
    Sender("proxy, `reknit-bbr`", "cubic", variant="reknit-bbr"),
    Sender("proxy, `reknit`", "cubic", variant="reknit"),
]


def run(*command: str) -> None:
    """Run a command."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def inside(namespace: str, *command: str) -> list[str]:
    """Return a command in a namespace."""
    return ["ip", "netns", "exec", namespace, *command]


@contextlib.contextmanager
def namespaces() -> Iterator[None]:
    """Create the three namespaces and the links between them."""
    try:
        for name in (CLIENT, GATEWAY, SERVER):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for n, host in ((1, CLIENT), (2, SERVER)):
            run("ip", "-n", GATEWAY, "link", "add", f"side{n}", "type", "veth", "peer", "name", "eth0", "netns", host)
            run("ip", "-n", GATEWAY, "address", "add", f"10.20{n}.0.1/24", "dev", f"side{n}")
            run("ip", "-n", GATEWAY, "link", "set", f"side{n}", "up")
            run("ip", "-n", host, "address", "add", f"10.20{n}.0.2/24", "dev", "eth0")
            run("ip", "-n", host, "link", "set", "eth0", "up")
            run("ip", "-n", host, "route", "add", "default", "via", f"10.20{n}.0.1")
        run(*inside(GATEWAY, "sysctl", "-qw", "net.ipv4.ip_forward=1"))
        yield
    finally:
        for name in (CLIENT, GATEWAY, SERVER):
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def process(command: list[str], ready: str = "") -> Iterator[None]:
    """Run a program meanwhile; first wait until its standard error contains `ready`."""
    with tempfile.TemporaryFile("w+") as log:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        try:
            for _ in range(200):
                log.seek(0)
                if child.poll() is not None or ready in log.read():
                    break
                time.sleep(0.05)
            yield
        finally:
            child.terminate()
            child.wait()


def transfer(path: str, seed: int, folder: Path, digest: str) -> float:
    """Fetch the file over the path. Return the goodput in Mbit/s; check the digest of a complete transfer."""
    file = folder / "received"
    curl = ["curl", "-s", "-o", str(file), "--max-time", str(LIMIT), f"http://{ADDRESS}/sent"]
    emulate = [str(REKNIT), "emulate", "--quiet", "--down", path, "--seed", str(seed), "--", *curl]
    file.unlink(missing_ok=True)
    began = time.monotonic()
    subprocess.run(inside(CLIENT, *emulate), check=False, stderr=subprocess.DEVNULL)
    elapsed = time.monotonic() - began
    received = file.read_bytes() if file.exists() else b""
    if len(received) == SIZE and hashlib.sha256(received).hexdigest() != digest:
        sys.exit(f"{path}: other data arrived")
    return len(received) * 8e-6 / elapsed


def measure(sender: Sender, path: str, folder: Path, digest: str) -> float:
    """Return the median goodput."""
    run(*inside(SERVER, "sysctl", "-qw", f"net.ipv4.tcp_reordering={sender.reordering}"))
    server = inside(SERVER, sys.executable, __file__, "serve", str(folder), sender.congestion_control)
    listen = f"{ADDRESS}:80"
    proxy = inside(GATEWAY, str(REKNIT), "proxy", "--listen", listen, "--variant", sender.variant, "--untouched", "0")
    running = process(proxy, "event=listening") if sender.variant else contextlib.nullcontext()
    with process(server, "serving"), running:
        return statistics.median(transfer(path, seed, folder, digest) for seed in range(1, REPEAT + 1))


def serve(folder: str, congestion_control: str) -> None:
    """Serve the files of a folder with this congestion control. A namespace cannot change the default."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    server = http.server.ThreadingHTTPServer((ADDRESS, 80), handler)
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    print("serving", file=sys.stderr, flush=True)
    server.serve_forever()


def main() -> None:
    """Print the table."""
    rows = []
    with tempfile.TemporaryDirectory() as name, namespaces():
        folder = Path(name)
        sent = folder / "sent"
        sent.write_bytes(os.urandom(SIZE))
        digest = hashlib.sha256(sent.read_bytes()).hexdigest()
        run(str(REKNIT), "matrix", "--seed", "101", "--paths", "16", "--write", name)
        for path in PATHS:
            file = folder / f"{path}.toml"
            which = str(file) if file.exists() else path
            cells = [f"{measure(sender, which, folder, digest):.2f}" for sender in SENDERS]
            print(path, *cells, file=sys.stderr)
            rows.append([f"`{path}`", *cells])
    print(f"# With and without a proxy\n\n{generated('study/benches/proxy.py')}\n")
    print(
        f"10 MB from a kernel to a kernel: goodput in Mbit/s, medians of {REPEAT} transfers of at most {LIMIT} s. The"
    )
    print("proxy is on a gateway between the server, which uses CUBIC, and the path; `101-15` is of `reknit matrix`.\n")
    for row in [["path", *(sender.name for sender in SENDERS)], ["---"] * (len(SENDERS) + 1), *rows]:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    serve(*sys.argv[2:]) if sys.argv[1:2] == ["serve"] else main()
