"""A worker that only meets the others: python -m ... '{"workers": [...]}'.

Prints what it said, and how the meeting ended, as one JSON object.
"""

from __future__ import annotations

import json
import sys
import time

from tfmulti.cluster import Cluster
from tfmulti.cluster.rendezvous import meet, meeting
from tfmulti.errors import TfmultiError


def main(given: dict) -> int:
    """Meets, prints, and gives the exit code that a worker would."""
    cluster = Cluster(
        workers=tuple(given["workers"]), index=given["index"], source="test"
    )
    terms = meeting.Terms(
        facts=given.get("facts", {}),
        token=given.get("token", ""),
        limit_s=given["limit_s"],
        first_s=0.5,
    )
    said: list[str] = []
    begun = time.monotonic()
    code, error = 0, ""
    ahead = time.time() + given.get("clock_ahead_s", 0)
    try:
        with meet.met(
            cluster,
            terms,
            said.append,
            now=lambda: ahead + time.monotonic() - begun,
        ):
            pass
    except TfmultiError as caught:
        code, error = caught.exit_code, str(caught)
    took_s = time.monotonic() - begun
    print(json.dumps({"said": said, "error": error, "took_s": took_s}))
    return code


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
