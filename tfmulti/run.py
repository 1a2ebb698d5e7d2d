"""python -m tfmulti.run: trains an experiment, or runs a person's script.

The thin edge: flags become records here, and nothing below reads a flag.

    argv -> flags -> Request -> decide -> Job -> LaunchPlan -> run
                                              \\-> --dry_run prints it

No TensorFlow is loaded on this side.
"""

from __future__ import annotations

if __name__ == "__main__":
    # Before the imports that take time: Ctrl-C is one line from here on.
    from tfmulti import console

    console.take_signals()

import contextlib
import dataclasses
import functools
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

from tfmulti import config, console, data, launch, version
from tfmulti.backend import check_backend
from tfmulti.cluster import (
    Cluster,
    from_hosts,
    on_this_host,
    own_gpus,
    rendezvous,
    resolve,
)
from tfmulti.communication import Communication, check, installed_nccl
from tfmulti.errors import UsageError
from tfmulti.hardware import (
    CUDA_VISIBLE_DEVICES,
    VisibleGpus,
    usable_cores,
    visible_gpus,
)
from tfmulti.launch import flags
from tfmulti.measure import check_fresh

_WHAT = "What to train"
_CHANGE = "Changes to the experiment"
_WHERE = "On what"
_REDUCE = "How gradients are reduced"
_ABOUT = "About the command"

USAGE = """\
Trains a Keras model on several GPUs with the result that one would give.

  python -m tfmulti.run [FLAGS]                         an experiment
  python -m tfmulti.run [FLAGS] train.py [ITS FLAGS]    your own script
  python -m tfmulti.run [FLAGS] -m package.module [ITS FLAGS]

A script runs unmodified: what fit() it calls trains on all replicas."""

EXAMPLES = """\
Examples:
  python -m tfmulti.run --strategy mirrored --replicas 2
  python -m tfmulti.run --strategy multiworker --workers 2 --dry_run
  python -m tfmulti.run --experiment digits_vit --epochs 5
  python -m tfmulti.run --strategy mirrored train.py --its --own flags

Exit code: 0 done; 2 wrong usage; 3 the workers did not find one another; 75
pre-empted, start it again; else that of the training program, or 128 + n
where signal n ended it."""

FLAGS: tuple[flags.Flag, ...] = tuple(
    flags.Flag(group=group, name=name, kind=kind, value=value, help=text)
    for group, name, kind, value, text in (
        (_WHAT, "experiment", "text", "NAME",
         f"An experiment by its name. Default: {config.DEFAULT_EXPERIMENT}."),
        (_WHAT, "list_experiments", "switch", "",
         "List the experiments, and end."),
        (_CHANGE, "epochs", "count", "N", "Passes over the training data."),
        (_CHANGE, "steps_per_epoch", "count", "N",
         "Steps in an epoch. Default: all examples once."),
        (_CHANGE, "global_batch_size", "count", "N",
         "Examples in one step, over all replicas together."),
        (_CHANGE, "learning_rate", "number", "RATE", "Peak learning rate."),
        (_CHANGE, "precision", "text", "NAME",
         f"One of {', '.join(config.PRECISIONS)}."),
        (_CHANGE, "seed", "whole", "N",
         "Seed of weights, order of the data and dropout."),
        (_CHANGE, "data", "text", "WHAT",
         "Other data: digits, synthetic, images:DIR, text:PATTERN, "
         "tfrecord:PATTERN, tfds:NAME."),
        (_CHANGE, "data_dir", "text", "DIR",
         "Folder to which the data's paths are relative."),
        (_WHERE, "strategy", "text", "NAME",
         "one: a single device. mirrored: all replicas in one process. "
         "multiworker: several processes, on one host or many. auto "
         "(default): what the environment and the GPUs suggest."),
        (_WHERE, "replicas", "count", "N",
         "Replicas of each worker. Default: all GPUs; without a GPU two "
         "logical CPU devices (mirrored) or one a worker."),
        (_WHERE, "workers", "count", "N",
         "Start N workers on this host. Where TF_CONFIG is set, or Slurm, "
         "mpirun or Kubernetes starts the command for several workers, it "
         "joins as one of them."),
        (_WHERE, "hosts", "text", "LIST",
         "All workers by host or host:port, the same list on each of them."),
        (_WHERE, "worker_index", "whole", "N",
         "Which entry of --hosts this is, from 0. Default: this host's."),
        (_WHERE, "rendezvous_timeout_s", "number", "SECONDS",
         "Multiworker: how long workers wait for one another at the start. "
         "Default: 300."),
        (_WHERE, "run_dir", "text", "DIR",
         "Folder for what the run leaves, of no other run. Default: "
         "runs/NAME-TIME."),
        (_WHERE, "dry_run", "switch", "",
         "Print the whole plan as JSON, and start nothing."),
        (_REDUCE, "all_reduce", "text", "NAME",
         "auto (default), nccl; mirrored also: hierarchical_copy, "
         "one_device; multiworker also: ring."),
        (_REDUCE, "packs", "whole", "N",
         "Mirrored: packs that the gradients are sent in."),
        (_REDUCE, "pack_mb", "number", "MB",
         "Multiworker: largest pack of gradients."),
        (_REDUCE, "collective_timeout_s", "number", "SECONDS",
         "Multiworker: fail where one reduction takes longer."),
        (_REDUCE, "nccl", "pairs", "KEY=VALUE",
         "A setting of NCCL, such as algorithm=ring. May be repeated."),
        (_REDUCE, "nccl_preset", "text", "NAME",
         "Settings of NCCL for a kind of host: nvlink, pcie, ethernet, "
         "infiniband, efa."),
        (_ABOUT, "flagfile", "text", "FILE",
         "Read further flags from a file, one a line."),
        (_ABOUT, "version", "switch", "", "Print the version, and end."),
        (_ABOUT, "help", "switch", "", "Print this text, and end."),
    )
)  # fmt: skip

# Flags that change an experiment, and mean nothing to a script.
_EXPERIMENT_FIELDS = (
    "epochs",
    "steps_per_epoch",
    "global_batch_size",
    "learning_rate",
    "precision",
    "seed",
    "data",
)
_EXPERIMENT_FLAGS = ("experiment", *_EXPERIMENT_FIELDS, "data_dir")

# The data of their own that people can give to a task.
_IMAGES = "images:DIR, tfrecord:PATTERN, array_record:PATTERN, tfds:NAME"
_OWN_DATA: Mapping[str, str] = {
    "classification": _IMAGES,
    "gan": _IMAGES,
    "language_model": "text:PATTERN, tfrecord:PATTERN, array_record:PATTERN",
}


def main(
    argv: Sequence[str] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.time,
) -> int:
    """Runs the command.

    Args:
        argv: The command line without the program; None: this process's.
        env: The person's environment; None: this process's.
        clock: Gives the time in seconds since 1970, for the run's folder.

    Returns:
        The exit code.
    """
    arguments = sys.argv[1:] if argv is None else argv
    variables = os.environ if env is None else env
    return console.guarded(lambda: _main(arguments, variables, clock))


def _main(
    argv: Sequence[str], env: Mapping[str, str], clock: Callable[[], float]
) -> int:
    own, script = flags.split(argv, FLAGS)
    values = flags.parse(own, FLAGS)
    if values["help"]:
        print(flags.help_text(USAGE, FLAGS, EXAMPLES), end="")
        return 0
    if values["version"]:
        print(f"tfmulti {version.VERSION}")
        return 0
    if values["list_experiments"]:
        print(_experiments(), end="")
        return 0
    _check_place(env)
    request = _request(values, script, clock)
    cluster = _cluster(values, env)
    gpus = visible_gpus(env)
    mine = own_gpus(gpus.names, cluster)
    if mine != gpus.names:
        env = {**env, CUDA_VISIBLE_DEVICES: ",".join(mine)}
        gpus = dataclasses.replace(gpus, names=mine)
    env = {**env, **_meeting(values["rendezvous_timeout_s"], cluster, env)}
    decision = launch.decide(request, cluster=cluster, gpus=gpus)
    claim = None
    if not values["dry_run"]:
        claim = functools.partial(
            launch.claimed,
            automatic=values["run_dir"] is None,
            say=console.say,
        )
    return _launch(decision, cluster, gpus, env, claim)


def _check_place(env: Mapping[str, str]) -> None:
    """Refuses a place in which no run can work."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UsageError(
            received="a working directory that was deleted",
            allowed="one that exists",
            remedy="Change to another folder (cd) and start again.",
        ) from None
    check_backend(env)


def _cluster(
    values: Mapping[str, Any], env: Mapping[str, str]
) -> Cluster | None:
    """Finds the workers that the flags name, or else the environment."""
    if values["hosts"] is not None:
        name = socket.gethostname()
        return from_hosts(
            values["hosts"],
            values["worker_index"],
            env,
            own_names=(name, name.split(".")[0]),
        )
    if values["worker_index"] is not None:
        raise UsageError(
            received=f"--worker_index={values['worker_index']}",
            allowed="--worker_index with --hosts",
            remedy="List all workers with --hosts.",
        )
    return resolve(env)


def _meeting(
    timeout_s: float | None, cluster: Cluster | None, env: Mapping[str, str]
) -> dict[str, str]:
    """Gives the variables by which the workers find one another."""
    variables = {}
    if timeout_s is not None:
        rendezvous.check_timeout(str(timeout_s))
        variables[rendezvous.TIMEOUT_VARIABLE] = str(timeout_s)
    if not env.get(rendezvous.TOKEN_VARIABLE):
        # Workers that start elsewhere can know only what all are told.
        token = cluster.identity if cluster else secrets.token_hex(16)
        variables[rendezvous.TOKEN_VARIABLE] = token
    return variables


def _request(
    values: Mapping[str, Any],
    script: launch.Script | None,
    clock: Callable[[], float],
) -> launch.Request:
    """Makes the record of what was asked for, and checks that it exists."""
    experiment = None
    if script is None:
        experiment = _experiment(values)
        name = experiment.name
        _check_folder(values["data_dir"])
        data.check(experiment.data, values["data_dir"])
    else:
        _refuse_experiment_flags(values)
        launch.check_script(script)
        name = script.name
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(clock()))
    return launch.Request(
        strategy=values["strategy"] or "auto",
        replicas=values["replicas"],
        workers=values["workers"],
        experiment=experiment,
        script=script,
        communication=Communication.from_flags(
            all_reduce=values["all_reduce"],
            packs=values["packs"],
            pack_mb=values["pack_mb"],
            timeout_s=values["collective_timeout_s"],
            nccl=values["nccl"],
            nccl_preset=values["nccl_preset"],
        ),
        # A script may change the working directory.
        run_dir=os.path.abspath(values["run_dir"] or f"runs/{name}-{stamp}"),
        data_dir=values["data_dir"] and os.path.abspath(values["data_dir"]),
    )


def _experiment(values: Mapping[str, Any]) -> config.Experiment:
    name = values["experiment"] or config.DEFAULT_EXPERIMENT
    changes = {field: values[field] for field in _EXPERIMENT_FIELDS}
    experiment = config.load_experiment(name).replace(**changes)
    if experiment.data == config.YOURS:
        raise UsageError(
            received=f"--experiment={name} without --data",
            allowed=f"{_OWN_DATA[experiment.task]}, or synthetic",
            remedy="Say with --data where yours are.",
        )
    return experiment


def _check_folder(data_dir: str | None) -> None:
    if data_dir is not None and not os.path.isdir(data_dir):
        raise UsageError(
            received=f"--data_dir={data_dir}, which is not a folder",
            allowed="a folder that exists",
            remedy="Correct the path, or leave --data_dir out.",
        )


def _refuse_experiment_flags(values: Mapping[str, Any]) -> None:
    for name in _EXPERIMENT_FLAGS:
        if values[name] is not None:
            raise UsageError(
                received=f"--{name}={values[name]} with a script",
                allowed=f"--{name} with an experiment",
                remedy="Give the script its own flags after its name.",
            )


def _launch(
    decision: launch.Decision,
    cluster: Cluster | None,
    gpus: VisibleGpus,
    env: Mapping[str, str],
    claim: Callable[..., contextlib.AbstractContextManager[str]] | None,
) -> int:
    """Starts what was decided; without a `claim` prints it as JSON."""
    job, notes = decision.job, decision.notes
    notes += check(
        job.communication,
        strategy=job.strategy,
        device=job.device,
        replicas=job.replicas_per_worker,
        workers=job.workers,
        nccl_version=installed_nccl(),
    )
    several = job.strategy == "multiworker"
    joins = several and cluster is not None
    with contextlib.ExitStack() as stack:
        if claim is not None and _writes(job, cluster, joins):
            folder = stack.enter_context(claim(job.run_dir))
            if job.experiment is not None:
                check_fresh(folder)
            job = dataclasses.replace(job, run_dir=folder)
            notes += _kept_logs(job)
        if several and not joins:
            held = launch.held_ports(job.workers)
            cluster = on_this_host(stack.enter_context(held))
        plan = launch.make_plan(
            job,
            cluster=cluster if several else None,
            joins=joins,
            env=env,
            gpu_names=gpus.names,
            cores=usable_cores().usable,
            notes=(*_version_notes(), *notes),
        )
        if claim is None:
            print(json.dumps(plan.to_json(), indent=2))
            return 0
        for note in plan.notes:
            console.say(note)
        return launch.run(plan, env=env, say=console.say)


def _writes(job: launch.Job, cluster: Cluster | None, joins: bool) -> bool:
    """Whether this host's part of the job leaves anything in its run_dir."""
    if job.script is not None:
        return job.workers > 1 and not joins
    return not joins or (cluster is not None and cluster.chief)


def _kept_logs(job: launch.Job) -> tuple[str, ...]:
    """Says whose logs a script's workers will replace."""
    if not os.path.isdir(f"{job.run_dir}/logs"):
        return ()
    return (f"The logs of an earlier run in {job.run_dir}/logs are replaced.",)


def _experiments() -> str:
    lines = []
    names = config.experiment_names()
    width = max(map(len, names), default=0)
    for name in names:
        summary = config.load_experiment(name).summary
        chosen = " (default)" if name == config.DEFAULT_EXPERIMENT else ""
        lines.append(f"{name:{width}}  {summary}{chosen}\n")
    return "".join(lines)


def _version_notes() -> tuple[str, ...]:
    try:
        return version.untested()
    except metadata.PackageNotFoundError as error:
        raise UsageError(
            received=f"an installation without {error.name}",
            allowed="one with TensorFlow and Keras",
            remedy=f"Run: pip install {error.name}",
        ) from None


if __name__ == "__main__":
    sys.exit(main())
