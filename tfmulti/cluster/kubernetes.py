"""Kubernetes: the pods of an Indexed Job or of a JobSet, one worker each.

Pods are found by name through a headless Service, in the same namespace:

    Indexed Job  <job>-<index>.<service>
    JobSet       <jobset>-<replicated job>-<job>-<index>.<subdomain>

Kubernetes says which pod this is, but not how many there are, so the manifest
has to set TFMULTI_NUM_WORKERS. Without it an Indexed Job is taken for what it
also may be: as many separate runs.

    JOB_COMPLETION_INDEX     set by Kubernetes in every pod
    HOSTNAME                 the pod's name in the network
    TFMULTI_NUM_WORKERS      pods, over all jobs
    TFMULTI_SERVICE          the Service; default: the Job or JobSet's name
    TFMULTI_PORT             default: 2222
    JOBSET_NAME, REPLICATED_JOB_NAME, JOB_INDEX
                             in a JobSet, from its labels by the downward API
    TFMULTI_NUM_JOBS         its jobs (`replicas`); default: 1

https://kubernetes.io/docs/concepts/workloads/controllers/job/
https://jobset.sigs.k8s.io/docs/concepts/
"""

from __future__ import annotations

from collections.abc import Mapping

from tfmulti.cluster.ports import chosen_port
from tfmulti.cluster.record import Cluster
from tfmulti.cluster.variables import whole
from tfmulti.errors import UsageError

INDEX = "JOB_COMPLETION_INDEX"
WORKERS = "TFMULTI_NUM_WORKERS"
SERVICE = "TFMULTI_SERVICE"
JOBS = "TFMULTI_NUM_JOBS"
PORT = 2222


def from_kubernetes(env: Mapping[str, str]) -> Cluster | None:
    """Reads the cluster from the variables of a pod.

    Args:
        env: The environment of this process.

    Returns:
        The pods seen from this one, or None outside of an Indexed Job or
        where it is not said that its pods belong together.

    Raises:
        UsageError: The variables contradict one another.
    """
    if INDEX not in env or whole(env, WORKERS, 1) < 2:
        return None
    workers, index = whole(env, WORKERS), whole(env, INDEX)
    port = chosen_port(env, PORT)
    if "JOBSET_NAME" in env:
        return _job_set(env, workers, index, port)
    job = _without_index(env.get("HOSTNAME", ""), index)
    service = env.get(SERVICE) or job
    return Cluster(
        workers=tuple(
            f"{job}-{pod}.{service}:{port}" for pod in range(workers)
        ),
        index=index,
        source=f"Kubernetes Job {job}",
        evidence=f"pod {index} of {workers}, by {INDEX} and {WORKERS}",
    )


def _job_set(
    env: Mapping[str, str], workers: int, pod: int, port: int
) -> Cluster:
    job_set, job = env["JOBSET_NAME"], env.get("REPLICATED_JOB_NAME", "")
    jobs, number = whole(env, JOBS, 1), whole(env, "JOB_INDEX", 0)
    pods = workers // jobs if jobs else 0
    if not job or pods * jobs != workers or number >= jobs or pod >= pods:
        raise UsageError(
            received=f"pod {pod} of job {number} ({job or 'without a name'}) "
            f"in JobSet {job_set}, with {WORKERS}={workers}, {JOBS}={jobs}",
            allowed="REPLICATED_JOB_NAME, and as many pods in each job",
            remedy="Correct the variables in the JobSet's pod template.",
        )
    service = env.get(SERVICE) or job_set
    return Cluster(
        workers=tuple(
            f"{job_set}-{job}-{n // pods}-{n % pods}.{service}:{port}"
            for n in range(workers)
        ),
        index=number * pods + pod,
        source=f"Kubernetes JobSet {job_set}",
        evidence=f"pod {pod} of job {number}, {pods} pods in each of {jobs}",
    )


def _without_index(name: str, index: int) -> str:
    job = name.split(".")[0].removesuffix(f"-{index}")
    if job and job != name.split(".")[0]:
        return job
    raise UsageError(
        received=f"HOSTNAME={name} in a pod with {INDEX}={index}",
        allowed=f"the name of the job, then -{index}",
        remedy="Leave the pod's hostname as the Job sets it, or set "
        "TF_CONFIG in each pod.",
    )
