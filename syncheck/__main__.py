"""``python -m syncheck``: the command line."""

import sys

from syncheck.cli import main

if __name__ == "__main__":
    sys.exit(main())
