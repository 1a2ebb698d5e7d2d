"""One training run as a record that travels from the launcher to its workers.

The launcher decides everything once (which strategy, how many replicas, on
which devices, what is trained) and writes the answer as JSON into the
variable TFMULTI_JOB of each worker. Workers decide nothing again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfmulti.communication import Communication
from tfmulti.config import Experiment
from tfmulti.errors import UsageError

JOB_VARIABLE = "TFMULTI_JOB"

STRATEGIES = ("one", "mirrored", "multiworker")
DEVICES = ("GPU", "CPU")


@dataclass(frozen=True, kw_only=True)
class Script:
    """A person's own training program and its own arguments.

    Attributes:
        path: The file to run, as it was given; None for a module.
        module: The module to run as `python -m` would; None for a file.
        argv: What follows it on the command line, untouched.
    """

    path: str | None = None
    module: str | None = None
    argv: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.path is None) == (self.module is None):
            raise UsageError(
                received=f"script path={self.path}, module={self.module}",
                allowed="one of the two",
                remedy="Give a script's path, or -m and a module.",
            )

    @property
    def name(self) -> str:
        """What to call it: "train" for "src/train.py" and "-m app.train"."""
        if self.module is not None:
            return self.module.rpartition(".")[2]
        assert self.path is not None
        return self.path.rpartition("/")[2].removesuffix(".py")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One training run, with everything decided.

    Attributes:
        strategy: One of `STRATEGIES`.
        workers: Processes, over all hosts.
        replicas_per_worker: Copies of the model in each of them.
        device: "GPU", or "CPU" for logical CPU devices.
        communication: How gradients are reduced.
        experiment: What is trained; None where a script says so itself.
        script: The program that trains; None for an experiment.
        run_dir: Folder for what the run leaves, an absolute path.
        data_dir: Folder to which the data's paths are relative; None: the
            working directory.
    """

    strategy: str
    workers: int = 1
    replicas_per_worker: int = 1
    device: str
    communication: Communication = field(default_factory=Communication)
    experiment: Experiment | None = None
    script: Script | None = None
    run_dir: str
    data_dir: str | None = None

    def __post_init__(self) -> None:
        _check_choice("strategy", self.strategy, STRATEGIES)
        _check_choice("device", self.device, DEVICES)
        single_process = self.strategy != "multiworker"
        single_replica = self.strategy == "one"
        _check_count("workers", self.workers, 1 if single_process else None)
        _check_count(
            "replicas_per_worker",
            self.replicas_per_worker,
            1 if single_replica else None,
        )
        if (self.experiment is None) == (self.script is None):
            raise UsageError(
                received="a job with "
                + ("neither" if self.script is None else "both")
                + " an experiment and a script",
                allowed="one of the two",
                remedy="Give an experiment or a script.",
            )

    @property
    def replicas(self) -> int:
        """Copies of the model over all workers."""
        return self.workers * self.replicas_per_worker

    def to_json(self) -> dict[str, Any]:
        """Gives the record as plain JSON values."""
        script, experiment = self.script, self.experiment
        return {
            "strategy": self.strategy,
            "workers": self.workers,
            "replicas_per_worker": self.replicas_per_worker,
            "device": self.device,
            "communication": self.communication.to_json(),
            "experiment": experiment.to_json() if experiment else None,
            "script": dataclasses.asdict(script) | {"argv": list(script.argv)}
            if script
            else None,
            "run_dir": self.run_dir,
            "data_dir": self.data_dir,
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Job:
        """Reads back what `to_json` gave."""
        values = dict(document)
        values["communication"] = Communication.from_json(
            values["communication"]
        )
        if values["experiment"] is not None:
            values["experiment"] = Experiment.from_json(values["experiment"])
        if values["script"] is not None:
            script = dict(values["script"])
            values["script"] = Script(
                **script | {"argv": tuple(script["argv"])}
            )
        return Job(**values)

    @staticmethod
    def from_environment(env: Mapping[str, str]) -> Job:
        """Reads the job that the launcher wrote into a worker's environment.

        Raises:
            UsageError: There is none.
        """
        if JOB_VARIABLE not in env:
            raise UsageError(
                received=f"a worker without {JOB_VARIABLE}",
                allowed="workers that the launcher starts",
                remedy="Start the job with python -m tfmulti.run.",
            )
        return Job.from_json(json.loads(env[JOB_VARIABLE]))


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(
            received=f"a job with {name} {value!r}",
            allowed=", ".join(allowed),
            remedy="Choose one of these.",
        )


def _check_count(name: str, value: int, only: int | None) -> None:
    if value < 1 or (only is not None and value != only):
        raise UsageError(
            received=f"a job with {name} {value}",
            allowed="a whole number from 1" if only is None else str(only),
            remedy="Correct the number, or choose another strategy.",
        )
