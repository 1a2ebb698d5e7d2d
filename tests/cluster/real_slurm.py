"""A Slurm cluster of two nodes on this host, for as long as a test runs.

Debian's slurmd runs several times on one host. No file outside the test's
folder is needed, nor munge, cgroups or systemd.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "srun", "sinfo", "scontrol")
NODES = ("n9", "n10")

_CONFIG = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait=5
SlurmdParameters=config_overrides
RequeueExit=75
{nodes}
PartitionName=all Nodes={names} Default=YES State=UP
"""


def missing() -> str:
    """Says what keeps a Slurm cluster from running here; "" if nothing."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed (Debian: slurm-wlm)"
    return "" if os.geteuid() == 0 else "slurmctld has to be started as root"


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Runs the cluster; gives the environment in which srun finds it."""
    config = folder / "slurm.conf"
    env = dict(os.environ) | {"SLURM_CONF": str(config)}
    port, *ports = _free_ports(1 + len(NODES))
    config.write_text(
        _CONFIG.format(
            host=socket.gethostname().split(".")[0],
            folder=folder,
            port=port,
            names=",".join(NODES),
            nodes="\n".join(
                f"NodeName={name} NodeHostname={socket.gethostname()} "
                f"NodeAddr=127.0.0.1 Port={own} CPUs=4"
                for name, own in zip(NODES, ports, strict=True)
            ),
        )
    )
    (folder / "state").mkdir()
    commands = [["slurmctld", "-D"]]
    commands += [["slurmd", "-D", "-N", name] for name in NODES]
    with contextlib.ExitStack() as stack:
        for command in commands:
            stack.enter_context(_running(command, env))
        _wait_until_idle(env)
        yield env


@contextlib.contextmanager
def _running(command: list[str], env: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_idle(env: dict[str, str], limit_s: float = 30) -> None:
    deadline_s = time.monotonic() + limit_s
    states = ""
    while time.monotonic() < deadline_s:
        states = subprocess.run(
            ["sinfo", "-N", "-h", "-o", "%t"],
            env=env,
            capture_output=True,
            text=True,
            timeout=limit_s,
        ).stdout
        if states.split() == ["idle"] * len(NODES):
            return
        time.sleep(0.1)
    raise AssertionError(f"Slurm's nodes are not idle: {states}")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
