#!/usr/bin/env python3
"""Live: what `reknit shield` and `reknit proxy` cost a flow in order, on a gateway with fast links.

    make build && sudo nice -n -15 python study/benches/gateway_cost.py > study/results/gateway-cost.md

Needs iperf3 and ethtool. Takes 15 minutes; the machine must not be busy.
"""

import argparse
import contextlib
import ctypes
import json
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from proxy import ADDRESS, CLIENT, GATEWAY, REKNIT, SERVER, generated, inside, namespaces, process, run

LINKS = [(GATEWAY, "side1"), (GATEWAY, "side2"), (CLIENT, "eth0"), (SERVER, "eth0")]
MODES = ["nothing", "observe", "resequence"]
RATES = ["500M", "2G"]
SO_ATTACH_FILTER, SO_TIMESTAMPNS = 26, 35
INTRODUCTION = """\
One flow of iperf3 (CUBIC) from a namespace to another, through a third one that forwards: two veth links with an MTU
of 1500 bytes. {processors} processors carry all of it, sender and receiver included, so read the ratios. Medians of
{repeat} runs of {seconds} s, with and without in turn. `off`: TSO, GSO and GRO are off, so each packet has at most
1500 bytes; `on`: the kernel combines packets."""
DELAY = """\
From the moment that a packet arrives at the gateway to the moment that it leaves, in microseconds: the kernel's
timestamps of one of 64 packets on both interfaces (packet(7)), or of all with `on`. The sender paces
(`--fq-rate`); medians of {repeat} runs of {seconds} s."""
PROXY = """\
From the server to the client, through `reknit proxy --untouched 0`: the kernel's TCP at the server, reknit's towards
the client."""


def offload(on: bool) -> None:
    """Turn the combination of packets on or off on all links."""
    state = "on" if on else "off"
    for namespace, link in LINKS:
        run(*inside(namespace, "ethtool", "-K", link, "tso", state, "gso", state, "gro", state))


def iperf3(args: argparse.Namespace, *options: str) -> float:
    """Return the goodput of one flow in Gbit/s."""
    command = ["iperf3", "-c", ADDRESS, "-p", "80", "-C", "cubic", "-J", *options]
    done = subprocess.run(inside(CLIENT, *command), check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] / 1e9


@contextlib.contextmanager
def shield(mode: str) -> Iterator[None]:
    """Run the shield on the gateway meanwhile, where data arrives."""
    if mode == "nothing":
        yield
        return
    with process(inside(GATEWAY, str(REKNIT), "shield", "--interface", "side1", "--mode", mode), "event=started"):
        yield


@contextlib.contextmanager
def proxy(mode: str) -> Iterator[None]:
    """Run the proxy on the gateway meanwhile."""
    if mode == "nothing":
        yield
        return
    command = [str(REKNIT), "proxy", "--listen", f"{ADDRESS}:80", "--untouched", "0"]
    with process(inside(GATEWAY, *command), "event=listening"):
        yield


def sampled(mask: int) -> list[tuple[int, int, int, int]]:
    """Return a filter (BPF): IPv4, TCP, longer than 1000 bytes, and an identification without the bits of the mask."""
    # Each line: code, jump if true, jump if false, value.
    code = [(0x30, 0, 0, 9), (0x15, 0, 5, 6), (0x80, 0, 0, 0), (0x25, 0, 3, 1000), (0x30, 0, 0, 5), (0x45, 1, 0, mask)]
    return [*code, (0x06, 0, 0, 64), (0x06, 0, 0, 0)]


def listen(interface: str, kind: int, mask: int) -> socket.socket:
    """Return a socket that sees a sample of the packets of an interface."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in sampled(mask)))
    packets.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(code) // 8, ctypes.addressof(code)))
    packets.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    packets.bind((interface, kind))
    return packets


def delays(seconds: float, mask: int) -> list[float]:
    """Return the delays of packets from one interface of this namespace to the other, in microseconds."""
    every = 3  # ETH_P_ALL: what leaves is seen too
    sides = [listen(side, every, mask) for side in ("side1", "side2")]
    arrived, found = {}, []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for side in select.select(sides, [], [], 0.1)[0]:
            packet, ancillary, _, address = side.recvmsg(64, 64)
            leaves = address[2] == socket.PACKET_OUTGOING
            if leaves != (side is sides[1]):
                continue
            whole, part = struct.unpack("qq", ancillary[0][2])
            key, at = packet[4:6] + packet[24:28], whole * 10**9 + part
            if not leaves:
                arrived[key] = at
            elif key in arrived:
                found.append((at - arrived.pop(key)) / 1000)
    return found


def delay(args: argparse.Namespace, rate: str, mask: int) -> tuple[float, float]:
    """Return the median and the 99th percentile of the delays of a flow that is paced."""
    watch = inside(GATEWAY, sys.executable, __file__, "delays", str(args.seconds / 2 - 1), str(mask))
    command = inside(CLIENT, "iperf3", "-c", ADDRESS, "-p", "80", "-C", "cubic")
    # The server takes one client at a time, so this one ends by itself.
    command += ["--fq-rate", rate, "-t", str(args.seconds // 2)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as client:
        time.sleep(0.5)
        done = subprocess.run(watch, check=True, stdout=subprocess.PIPE)
    if client.returncode != 0:
        raise RuntimeError("iperf3 has failed")
    time.sleep(0.5)
    cuts = statistics.quantiles(json.loads(done.stdout), n=100)
    return cuts[49], cuts[98]


def throughput(tool: object, modes: list[str], args: argparse.Namespace, *options: str) -> dict[str, float]:
    """Return the median goodput for each mode."""
    found: dict[str, list[float]] = {mode: [] for mode in modes}
    for _ in range(args.repeat):
        for mode in modes:
            with tool(mode):
                found[mode].append(iperf3(args, "-t", str(args.seconds), *options))
                print(mode, *options, f"{found[mode][-1]:.2f} Gbit/s", file=sys.stderr)
    return {mode: statistics.median(rates) for mode, rates in found.items()}


def throughputs(tool: object, modes: list[str], args: argparse.Namespace, *options: str) -> None:
    """Print the table of goodputs."""
    print(f"| packets | {' | '.join(modes)} |\n|---|{'---|' * len(modes)}")
    for on in (False, True):
        offload(on)
        rates = throughput(tool, modes, args, *options)
        cells = [f"{rate:.2f} ({rate / rates['nothing']:.2f})" for rate in rates.values()]
        print(f"| {'on' if on else 'off'} | {' | '.join(cells)} |", flush=True)


def delay_table(args: argparse.Namespace) -> None:
    """Print the table of delays."""
    print(f"| packets | rate | {' | '.join(f'{mode}: 50 %, 99 %' for mode in MODES)} |\n|---|---|---|---|---|")
    for on in (False, True):
        offload(on)
        for rate in RATES:
            found: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
            for _ in range(args.repeat):
                for mode in MODES:
                    with shield(mode):
                        # Combined packets are few, and their identifications may all be odd.
                        found[mode].append(delay(args, rate, 0 if on else 63))
                        print(mode, rate, found[mode][-1], file=sys.stderr)
            medians = [[statistics.median(column) for column in zip(*found[mode], strict=True)] for mode in MODES]
            cells = [f"{middle:.0f}, {high:.0f}" for middle, high in medians]
            print(f"| {'on' if on else 'off'} | {rate}bit/s | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10, help="the duration of a run")
    parser.add_argument("--repeat", type=int, default=5, help="runs of which the median is taken")
    args = parser.parse_args()
    given = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
    print(f"# What a gateway costs\n\n{generated(f'study/benches/{given}')}\n")
    print(INTRODUCTION.format(processors=os.cpu_count(), repeat=args.repeat, seconds=args.seconds))
    server = inside(SERVER, "iperf3", "-s", "-p", "80")
    with namespaces(), process(server):
        time.sleep(1)
        print("\n## The shield: goodput in Gbit/s, and the ratio to that with nothing\n")
        throughputs(shield, MODES, args)
        print(f"\n## The shield: delay\n\n{DELAY.format(repeat=args.repeat, seconds=args.seconds // 2)}\n")
        delay_table(args)
        print(f"\n## The proxy: goodput in Gbit/s\n\n{PROXY}\n")
        throughputs(proxy, ["nothing", "proxy"], args, "-R")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["delays", seconds, mask]:
            print(delays(float(seconds), int(mask)))
        case _:
            main()
