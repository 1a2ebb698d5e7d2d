"""What a worker finds in its environment besides what the person has there.

TensorFlow, NCCL and gRPC read their variables while they load, so these must
be there before a worker starts. What the person has set always stays, with
one exception: the GPUs that CUDA_VISIBLE_DEVICES lists are shared out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tfmulti.cluster import TF_CONFIG, Cluster
from tfmulti.hardware import CUDA_VISIBLE_DEVICES
from tfmulti.launch.job import JOB_VARIABLE, Job

# gRPC's own order of asking:
# https://grpc.github.io/grpc/core/md_doc_environment_variables.html
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_NO_PROXY = "no_grpc_proxy"


def job_variables(job: Job, cluster: Cluster | None) -> dict[str, str]:
    """Gives what tells a worker its job and its place in it."""
    variables = {JOB_VARIABLE: json.dumps(job.to_json())}
    if cluster is not None and cluster.source != TF_CONFIG:
        variables[TF_CONFIG] = cluster.tf_config()
    return variables


def common_variables(
    job: Job,
    cluster: Cluster | None,
    processes: int,
    cores: int,
    env: Mapping[str, str],
) -> dict[str, str]:
    """Gives what is the same for each of the processes that start here."""
    return (
        quiet_variables(job.device, env)
        | thread_variables(processes, cores, env)
        | proxy_variables(cluster, env)
        | output_variables(processes, env)
    )


def gpu_variables(
    names: Sequence[str], place: int, replicas: int, env: Mapping[str, str]
) -> dict[str, str]:
    """Gives a process its share of this host's GPUs.

    Args:
        names: The GPUs to share out, as CUDA_VISIBLE_DEVICES names them.
        place: The place of this process among those that start here.
        replicas: GPUs for each process.
        env: The person's environment.
    """
    if not names:
        # Keeps TensorFlow from searching for a driver, and from complaining.
        return _unless_set(env, {CUDA_VISIBLE_DEVICES: "-1"})
    share = names[place * replicas : (place + 1) * replicas]
    if list(share) == list(names):
        return {}
    return {CUDA_VISIBLE_DEVICES: ",".join(share)}


def quiet_variables(device: str, env: Mapping[str, str]) -> dict[str, str]:
    """Silences TensorFlow's C++ side up to warnings, without GPUs to errors.

    The error that it logs on every host without a GPU is that there is none;
    errors that matter reach Python as exceptions.
    """
    level = "2" if device == "GPU" else "3"
    return _unless_set(env, {"TF_CPP_MIN_LOG_LEVEL": level})


def thread_variables(
    processes: int, cores: int, env: Mapping[str, str]
) -> dict[str, str]:
    """Shares this host's cores out among the workers that start here.

    TensorFlow reads the first two (each worker would otherwise start a thread
    for every core). OMP_NUM_THREADS is for numpy's linear algebra and the
    libraries of a person's script; stock TensorFlow does not read it.
    Two threads between operations are the least with which a collective and
    what it waits for can be in flight together.
    """
    if processes == 1:
        return {}
    share = max(1, cores // processes)
    return _unless_set(
        env,
        {
            "TF_NUM_INTRAOP_THREADS": str(share),
            "TF_NUM_INTEROP_THREADS": str(max(2, share)),
            "OMP_NUM_THREADS": str(share),
        },
    )


def proxy_variables(
    cluster: Cluster | None, env: Mapping[str, str]
) -> dict[str, str]:
    """Keeps the workers' traffic among themselves off an HTTP proxy.

    gRPC sends even what is for 127.0.0.1 to a proxy that is set for web
    traffic; the workers then wait for one another for ever.
    """
    proxied = any(env.get(name) for name in _PROXIES)
    if cluster is None or not proxied or _NO_PROXY in env:
        return {}
    hosts = [address.rpartition(":")[0] for address in cluster.workers]
    others = [part for part in env.get("no_proxy", "").split(",") if part]
    return {_NO_PROXY: ",".join(dict.fromkeys([*hosts, *others]))}


def output_variables(
    processes: int, env: Mapping[str, str]
) -> dict[str, str]:
    """Makes Python write at once where its output passes through a pipe."""
    if processes == 1:
        return {}
    return _unless_set(env, {"PYTHONUNBUFFERED": "1"})


def _unless_set(
    env: Mapping[str, str], wanted: Mapping[str, str]
) -> dict[str, str]:
    return {name: wanted[name] for name in wanted if name not in env}
