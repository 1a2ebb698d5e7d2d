"""Prints which fixes of Keras fit the installed versions, as JSON.

Nothing is applied: each fix is held against what is installed.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import keras
import tensorflow as tf

from tfmulti.keras3 import VERIFIED
from tfmulti.keras3.fixes import FIXES


def report() -> dict[str, Any]:
    """Gives the installed versions and one entry for each fix."""
    return {
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
        "verified": list(VERIFIED),
        "fixes": [
            {
                "name": fix.name,
                "fault": fix.fault,
                "upstream": fix.upstream,
                "versions": fix.versions,
                "changed": list(fix.changed()),
            }
            for fix in FIXES
        ],
    }


if __name__ == "__main__":
    json.dump(report(), sys.stdout)
