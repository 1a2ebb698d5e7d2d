"""From cluster, devices and settings to a tf.distribute.Strategy.

    init.py          tfmulti.init(), for people's own code
    choose.py        what to build: pure
    process.py       the one strategy of a process: `install`, `installed`
    devices.py       GPUs, or logical CPU devices
    build.py         one, mirrored or multi-worker
    reduction.py     communication settings -> what TensorFlow takes
    signals.py       SIGTERM keeps its meaning
    multi_worker.py  N workers of M replicas, on CPUs too
    adopt.py         scripts that make their own strategy get the job's
    late_settings.py settings of devices that come too late
    wishes.py        what such a script asked for, honoured or answered
    patching.py      replacing attributes of classes, and putting them back
    last_words.py    why a worker ends, told to the others
    messages.py      TensorFlow's errors of misuse, with the remedy
"""

from __future__ import annotations

from tfmulti.strategy.adopt import adopted
from tfmulti.strategy.build import build_strategy
from tfmulti.strategy.devices import configure_devices
from tfmulti.strategy.init import init
from tfmulti.strategy.last_words import failure_of_another, tell_the_others
from tfmulti.strategy.messages import explain, explain_text
from tfmulti.strategy.process import Installed, install, installed

__all__ = [
    "Installed",
    "adopted",
    "build_strategy",
    "configure_devices",
    "explain",
    "explain_text",
    "failure_of_another",
    "init",
    "install",
    "installed",
    "tell_the_others",
]
