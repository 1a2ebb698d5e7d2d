"""python -m tfmulti: the same as the console script `tfmulti`."""

from __future__ import annotations

import sys

from tfmulti.cli import main

if __name__ == "__main__":
    sys.exit(main())
