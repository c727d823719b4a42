"""The command ``reknit``."""

import sys
from importlib.util import find_spec

from reknit import _native


def main() -> int:
    """Run the command with this process's arguments.

    Returns
    -------
    int
        0 success, 1 failure, 2 wrong usage.
    """
    if sys.argv[1:2] == ["papers"] and find_spec("reknit_study"):
        from reknit_study.papers import _command

        return _command.main(sys.argv[2:])
    return _native.command(["reknit", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
