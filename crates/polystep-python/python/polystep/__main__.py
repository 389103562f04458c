"""The command line: `polystep`, or `python -m polystep`."""

import os
import signal
import sys


def main() -> None:
    """Runs the command of `sys.argv` and exits with its code."""
    from . import _native

    # The command handles signals itself, or lets them end the process; Python would only note them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, "-m", "polystep"]
    sys.exit(_native.main(["polystep", *sys.argv[1:]], command, os.path.dirname(os.path.abspath(__file__))))


if __name__ == "__main__":
    main()
