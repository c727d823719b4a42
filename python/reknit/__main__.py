"""The command ``reknit``."""

import sys

from reknit import _native


def main() -> int:
    """Run the command with this process's arguments.

    Returns
    -------
    int
        0 done, 1 failed, 2 wrong usage.
    """
    return _native.command(["reknit", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
