"""`python -m trysquare`: the same as the `trysquare` command."""

import sys

from trysquare.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
