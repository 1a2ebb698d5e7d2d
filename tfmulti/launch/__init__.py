"""Starts the workers of a job on this host, and watches them.

The launcher never imports TensorFlow: a process that has initialised the
devices cannot hand them to its children, and the one that watches must
outlive a runtime that crashes.

    request.py      what was asked for  -> a job with everything decided
    job.py          the job, as it travels to the workers
    script.py       is the person's script there?
    run_folder.py   a run's folder, of no other run
    environment.py  what a worker finds in its environment
    plan.py         job -> every command and variable, as a value
    ports.py        free ports, kept free
    local.py        runs a plan: output, signals, failures
    worker.py       one running worker
    child.py        how a process starts and ends
    output.py       a worker's bytes -> lines
    flags.py        command-line flags: table -> parser and help text
"""

from __future__ import annotations

from tfmulti.launch.job import JOB_VARIABLE, Job, Script
from tfmulti.launch.local import run
from tfmulti.launch.plan import LaunchPlan, WorkerPlan, make_plan
from tfmulti.launch.ports import held_ports
from tfmulti.launch.request import Decision, Request, decide
from tfmulti.launch.run_folder import claimed
from tfmulti.launch.script import check_script

__all__ = [
    "JOB_VARIABLE",
    "Decision",
    "Job",
    "LaunchPlan",
    "Request",
    "Script",
    "WorkerPlan",
    "check_script",
    "claimed",
    "decide",
    "held_ports",
    "make_plan",
    "run",
]
