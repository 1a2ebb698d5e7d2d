"""python -m tfmulti.run: trains an experiment, or runs a person's script.

The thin edge: flags become records here, and nothing below reads a flag.

    argv -> flags -> Request -> decide -> Job -> LaunchPlan -> run
                                              \\-> --dry_run prints it

No TensorFlow is loaded on this side.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

from tfmulti import config, data, launch, version
from tfmulti.cluster import Cluster, on_this_host, resolve
from tfmulti.communication import Communication, check, installed_nccl
from tfmulti.errors import TfmultiError, UsageError
from tfmulti.hardware import VisibleGpus, usable_cores, visible_gpus
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

Exit code: 0 done; 2 wrong usage; else that of the training program, or
128 + n where signal n ended it."""

FLAGS: tuple[flags.Flag, ...] = tuple(
    flags.Flag(group=group, name=name, kind=kind, value=value, help=text)
    for group, name, kind, value, text in (
        (_WHAT, "experiment", "text", "NAME",
         f"An experiment by its name. Default: {config.DEFAULT_EXPERIMENT}."),
        (_WHAT, "list_experiments", "switch", "",
         "List the experiments, and end."),
        (_CHANGE, "epochs", "whole", "N", "Passes over the training data."),
        (_CHANGE, "steps_per_epoch", "whole", "N",
         "Steps in an epoch. Default: all examples once."),
        (_CHANGE, "global_batch_size", "whole", "N",
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
        (_WHERE, "replicas", "whole", "N",
         "Replicas of each worker. Default: all GPUs; without a GPU two "
         "logical CPU devices (mirrored) or one a worker."),
        (_WHERE, "workers", "whole", "N",
         "Start N workers on this host. Where TF_CONFIG is set, the command "
         "joins as the worker that it names."),
        (_WHERE, "run_dir", "text", "DIR",
         "Folder for what the run leaves. Default: runs/NAME-TIME."),
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
        (_REDUCE, "nccl", "list", "KEY=VALUE",
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
    try:
        return _main(arguments, os.environ if env is None else env, clock)
    except TfmultiError as error:
        _say(str(error))
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has left. Python would complain once more
        # when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13


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
    request = _request(values, script, clock)
    cluster = resolve(env)
    gpus = visible_gpus(env)
    decision = launch.decide(request, cluster=cluster, gpus=gpus)
    return _launch(decision, cluster, gpus, env, bool(values["dry_run"]))


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
    return config.load_experiment(name).replace(**changes)


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
    dry_run: bool,
) -> int:
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
        if dry_run:
            print(json.dumps(plan.to_json(), indent=2))
            return 0
        _make_run_dir(plan)
        for note in plan.notes:
            _say(note)
        return launch.run(plan, env=env, say=_say)


def _make_run_dir(plan: launch.LaunchPlan) -> None:
    """Makes the folder where something will be written, or says why not."""
    if plan.job.script is not None and len(plan.workers) == 1:
        return
    if plan.workers[0].index != 0:
        return
    if plan.job.experiment is not None:
        check_fresh(plan.job.run_dir)
    try:
        os.makedirs(plan.job.run_dir, exist_ok=True)
    except OSError as error:
        raise UsageError(
            received=f"--run_dir={plan.job.run_dir} ({error.strerror})",
            allowed="a folder that exists or can be made",
            remedy="Give another folder for --run_dir.",
        ) from None


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


def _say(line: str) -> None:
    print(f"tfmulti: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
