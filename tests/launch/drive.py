"""A launcher in a process of its own, which tests can signal and kill.

    python -m tests.launch.drive '{"programs": [...], "logs": DIR, ...}'

runs a plan whose workers are the given Python programs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from tfmulti.launch import Job, LaunchPlan, Script, WorkerPlan, run


def plan_of(programs: Sequence[str], logs: str | None) -> LaunchPlan:
    """Plans a worker for each program; without `logs` it runs alone."""
    job = Job(
        strategy="multiworker",
        workers=len(programs),
        device="CPU",
        script=Script(path="none.py"),
        run_dir="/nowhere",
    )
    return LaunchPlan(
        job=job,
        workers=tuple(
            WorkerPlan(
                index=index,
                argv=(sys.executable, "-u", "-c", program),
                env={"WORKER": str(index)},
                log_path=f"{logs}/logs/worker-{index}.log" if logs else None,
            )
            for index, program in enumerate(programs)
        ),
    )


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    sys.exit(
        run(
            plan_of(asked["programs"], asked["logs"]),
            env=os.environ,
            grace_s=asked.get("grace_s", 5.0),
        )
    )
