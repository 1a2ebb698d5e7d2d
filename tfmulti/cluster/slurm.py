"""Slurm: the tasks of a step, one worker each.

    srun -N2 --ntasks-per-node=2 python -m tfmulti.run

A task knows its node and its place there, and how many tasks each node has;
which rank runs on which node it knows of its own node only, as that depends
on `srun -m`. Workers are therefore counted node by node, not by rank: this
order is the same for every distribution, and where Slurm fills node by node
(the default) it is that of the ranks.

    SLURM_STEP_ID              set in tasks alone, not in a batch script
    SLURM_STEP_NODELIST        n[9-10], expanded here, in Slurm's order
    SLURM_STEP_TASKS_PER_NODE  2(x2)
    SLURM_NODEID, _LOCALID     where this task is
    SLURM_STEP_RESV_PORTS      ports of `srun --resv-ports`, used if there

A node's address is what `scontrol` calls NodeAddr, which need not be the
node's name. One that cannot be asked (in a container) leaves the name.

https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tfmulti.cluster.ask import Ask
from tfmulti.cluster.host_names import expand_counts, expand_hosts
from tfmulti.cluster.ports import chosen_port, first_port, with_ports
from tfmulti.cluster.record import Cluster
from tfmulti.cluster.variables import whole
from tfmulti.errors import UsageError

_NODE = re.compile(r"\bNodeName=(\S+)")
_ADDRESS = re.compile(r"\bNodeAddr=(\S+)")


def from_slurm(env: Mapping[str, str], ask: Ask) -> Cluster | None:
    """Reads the cluster from the variables of a Slurm task.

    Args:
        env: The environment of this process.
        ask: Runs `scontrol`.

    Returns:
        The step's tasks seen from this one, or None outside of a step or in
        one of a single task.

    Raises:
        UsageError: The variables contradict one another.
    """
    if "SLURM_STEP_ID" not in env or whole(env, "SLURM_STEP_NUM_TASKS") < 2:
        return None
    text = env.get("SLURM_STEP_NODELIST", "")
    nodes = expand_hosts(text)
    counts = expand_counts(env.get("SLURM_STEP_TASKS_PER_NODE", ""))
    node, local = whole(env, "SLURM_NODEID"), whole(env, "SLURM_LOCALID")
    _check(env, nodes, counts, node, local)
    job, step = whole(env, "SLURM_JOB_ID"), whole(env, "SLURM_STEP_ID")
    addresses = _addresses(nodes, ask(_question(nodes)))
    hosts = [
        address
        for address, count in zip(addresses, counts, strict=True)
        for _ in range(count)
    ]
    most = max(hosts.count(host) for host in set(hosts))
    port = chosen_port(env, _reserved(env, most) or first_port(job, step))
    return Cluster(
        workers=with_ports(hosts, port),
        index=sum(counts[:node]) + local,
        source=f"Slurm step {job}.{step}",
        evidence=f"task {local} of {counts[node]} on node {nodes[node]}, "
        f"number {node} of {text}; tasks per node "
        f"{env['SLURM_STEP_TASKS_PER_NODE']}",
        identity=f"slurm {env.get('SLURM_CLUSTER_NAME', '')} {job}.{step}",
        **_share(env, local, counts[node]),
    )


def _check(
    env: Mapping[str, str],
    nodes: Sequence[str],
    counts: Sequence[int],
    node: int,
    local: int,
) -> None:
    tasks = whole(env, "SLURM_STEP_NUM_TASKS")
    fits = len(nodes) == len(counts) and sum(counts) == tasks
    fits = fits and node < len(nodes) and local < counts[node]
    if fits and env.get("SLURMD_NODENAME", nodes[node]) == nodes[node]:
        return
    raise UsageError(
        received=f"Slurm variables that contradict one another: task {local} "
        f"of node {node} ({env.get('SLURMD_NODENAME', 'no name')}) among "
        f"{tasks} tasks on {env.get('SLURM_STEP_NODELIST')}, tasks per node "
        f"{env.get('SLURM_STEP_TASKS_PER_NODE')}",
        allowed="those that srun sets",
        remedy="Change none of them, or set TF_CONFIG for each task.",
    )


def _question(nodes: Sequence[str]) -> tuple[str, ...]:
    return ("scontrol", "show", "node", "--oneliner", ",".join(nodes))


def _addresses(nodes: Sequence[str], answer: str | None) -> list[str]:
    """Gives each node's address from what scontrol prints, a node a line."""
    known = {}
    for line in (answer or "").splitlines():
        name, address = _NODE.search(line), _ADDRESS.search(line)
        if name and address:
            known[name[1]] = address[1]
    return [known.get(node, node) for node in nodes]


def _reserved(env: Mapping[str, str], needed: int) -> int | None:
    """Gives the first of `needed` consecutive reserved ports, if any."""
    text = env.get("SLURM_STEP_RESV_PORTS", "")
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if int(last or first) - int(first) + 1 >= needed:
            return int(first)
    return None


def _share(
    env: Mapping[str, str], local: int, tasks: int
) -> dict[str, int]:
    """Says whether this task shares the GPUs that it sees with others.

    With GPUs bound to tasks, each sees fewer than the node gives to the step.
    With GPUs of the step, or unbound ones, all tasks of a node see the same.
    """
    seen = [part for part in _visible(env).split(",") if part]
    if seen and len(seen) < whole(env, "SLURM_GPUS_ON_NODE", 0):
        return {}
    return {"local_index": local, "local_size": tasks}


def _visible(env: Mapping[str, str]) -> str:
    return env.get("CUDA_VISIBLE_DEVICES", "")
