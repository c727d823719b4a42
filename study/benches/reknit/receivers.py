"""Receivers that lie, and the memory that the plug-ins of a connection use."""

import json

from tools import goal, run, table

LIES = ["dsack", "sack-random", "divide", "optimistic"]
PATHS = ["two-paths-50ms", "random-delay", "lossy"]


def receivers() -> None:
    """Compare what liars get from `reknit` and from `linux`, each beside an honest receiver of the same variant."""
    arguments = ["--variants", "reknit,linux", "--lies", ",".join(LIES), "--duration", "20 s", "--json"]
    attacks = json.loads(run("attacks", *arguments))["attacks"]
    got = {(one["variant"], one["lie"]): one["liar_mbit_s"] for one in attacks}
    honest = {one["variant"]: one["honest_mbit_s"] for one in attacks}
    rows = [["none", *(f"{honest[variant]:.2f}" for variant in ("reknit", "linux"))]]
    rows += [[f"`{lie}`", *(f"{got[variant, lie]:.2f}" for variant in ("reknit", "linux"))] for lie in LIES]
    print("## Receivers that lie\n\nGoodput of a liar beside an honest receiver, in Mbit/s of 10:\n")
    table(["lie", "`reknit`", "`linux`"], rows)
    most = max(got["reknit", lie] / max(got["linux", lie], honest["linux"]) for lie in LIES)
    goal("a liar's goodput / that from `linux`", "at most 1.1", f"at most {most:.2f}", holds=most <= 1.1)


def state() -> None:
    """Measure the largest state."""
    most = 0
    for path in PATHS:
        result = json.loads(run("simulate", "--path", path, "--variant", "reknit", "--duration", "20 s", "--json"))
        most = max(most, result["run"]["measured"]["reordering_state_bytes"])
    goal("state per connection beyond that of `sack`", "at most 1024 bytes", f"{most} bytes", holds=most <= 1024)
