"""Who am I among whom: the workers of a job, and which of them this one is.

A job that spans several processes needs each of them to know the addresses of
all, in one order, and its own place in it. Whoever starts the processes says
so in the environment: TF_CONFIG is TensorFlow's own way. One file here reads
one way; `resolve` asks them in order, and the first that answers is believed.

    record.py     the answer: `Cluster`
    tf_config.py  TF_CONFIG
    slurm.py      a Slurm step
    open_mpi.py   mpirun
    kubernetes.py an Indexed Job or a JobSet
    static.py     a list of hosts, by flag
    one_host.py   several workers that this host starts itself
    resolve.py    the order of asking
    ports.py      ports where nobody has given any
    gpus.py       which GPUs a worker takes where several see the same ones

Everything takes the environment as a mapping and changes nothing; what needs
a command's answer takes the function that asks.
"""

from __future__ import annotations

from tfmulti.cluster.gpus import own_gpus
from tfmulti.cluster.one_host import on_this_host
from tfmulti.cluster.record import Cluster
from tfmulti.cluster.resolve import resolve
from tfmulti.cluster.static import from_hosts
from tfmulti.cluster.tf_config import TF_CONFIG, from_tf_config

__all__ = [
    "TF_CONFIG",
    "Cluster",
    "from_hosts",
    "from_tf_config",
    "on_this_host",
    "own_gpus",
    "resolve",
]
