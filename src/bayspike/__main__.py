"""`python -m bayspike` is `bayspike`."""

import sys

from bayspike.cli import main

if __name__ == "__main__":
    sys.exit(main())
