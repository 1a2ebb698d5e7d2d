"""What real tasks found in their environments: Slurm 22.05, Open MPI 4.1.

Recorded with `srun ... env` on a cluster of two nodes, n9 and n10, with two
GPUs each. A line is a task, in the order of its rank.
"""

from __future__ import annotations

NODES = "NodeName=n9 Arch=x86_64 NodeAddr=10.0.0.9 NodeHostName=n9\n" + (
    "NodeName=n10 Arch=x86_64 NodeAddr=10.0.0.10 NodeHostName=n10\n"
)

_SLURM = {
    "plain": (
        "-N2 -n2",
        2,
        "1(x2)",
        ("0 n9 0 0", "1 n10 1 0"),
    ),
    "several_a_node": (
        "-N2 -n3",
        3,
        "2,1",
        ("0 n9 0 0", "1 n9 0 1", "2 n10 1 0"),
    ),
    "cyclic": (
        "-N2 -n4 -m cyclic",
        4,
        "3,1",
        ("0 n9 0 0", "1 n10 1 0", "2 n9 0 1", "3 n9 0 2"),
    ),
    "plane": (
        "-N2 -n4 -m plane=2",
        4,
        "3,1",
        ("0 n9 0 0", "1 n9 0 1", "2 n10 1 0", "3 n9 0 2"),
    ),
    "arbitrary": (
        "-n3 -m arbitrary",
        3,
        "2,1",
        ("0 n10 1 0", "1 n9 0 0", "2 n9 0 1"),
    ),
}


def slurm(name: str, **more: str) -> list[dict[str, str]]:
    """Gives the environments of a step's tasks, in the order of ranks."""
    _, size, per_node, tasks = _SLURM[name]
    return [
        {
            "SLURM_JOB_ID": "7",
            "SLURM_STEP_ID": "0",
            "SLURM_STEP_NODELIST": "n[9-10]",
            "SLURM_STEP_NUM_TASKS": str(size),
            "SLURM_STEP_TASKS_PER_NODE": per_node,
            "SLURM_PROCID": rank,
            "SLURMD_NODENAME": node,
            "SLURM_NODEID": number,
            "SLURM_LOCALID": local,
            **more,
        }
        for rank, node, number, local in (task.split() for task in tasks)
    ]


SLURM_STEPS = tuple(_SLURM)


def open_mpi(
    size: int, local_size: int, rank: int, **more: str
) -> dict[str, str]:
    """Gives the environment of one rank, as mpirun 4.1 fills nodes."""
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": str(size),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank % local_size),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(local_size),
        "OMPI_COMM_WORLD_NODE_RANK": str(rank % local_size),
        "OMPI_MCA_ess_base_jobid": "1967718401",
        **more,
    }
