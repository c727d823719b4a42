"""The memory that the plug-ins of a connection use."""

import json

from tools import goal, run

PATHS = ["two-paths-50ms", "random-delay", "lossy"]


def state() -> None:
    """Measure the largest state."""
    most = 0
    for path in PATHS:
        result = json.loads(run("simulate", "--path", path, "--variant", "reknit", "--duration", "20 s", "--json"))
        most = max(most, result["run"]["measured"]["reordering_state_bytes"])
    goal("state per connection beyond that of `sack`", "at most 1024 bytes", f"{most} bytes", holds=most <= 1024)
