"""An experiment's optimizer: rule, schedule, clipping and decay.

    learning rate
    peak |   /\\___
         |  /     \\___
         | /          \\___          warm-up, then half a cosine to zero
       0 |/________________\\__ step    (warmup_steps=None: constant)
"""

from __future__ import annotations

import logging
from typing import Any

import keras

from tfmulti.config import Experiment
from tfmulti.errors import UsageError

# Heavy-ball momentum of "sgd"; 0.9 as in He et al. 2015, arXiv:1512.03385.
SGD_MOMENTUM = 0.9


def make_optimizer(
    experiment: Experiment, total_steps: int, **settings: Any
) -> keras.optimizers.Optimizer:
    """Makes the optimizer; call it inside the strategy's scope.

    Args:
        experiment: Says rule, rate, warm-up, clipping and decay.
        total_steps: Optimizer steps of the whole run, where the cosine ends.
        **settings: Settings of the rule that a task needs, such as `beta_1`;
            those that the rule does not have are an error of Keras.

    Raises:
        UsageError: Decay without "adamw".
    """
    name = experiment.optimizer
    if experiment.weight_decay is not None:
        if name != "adamw":
            raise UsageError(
                received=f"weight_decay={experiment.weight_decay} with "
                f"optimizer={name}",
                allowed="weight_decay with optimizer=adamw",
                remedy="Choose adamw or leave weight_decay out.",
            )
        settings["weight_decay"] = experiment.weight_decay
    if name == "sgd":
        settings = {"momentum": SGD_MOMENTUM, "nesterov": True} | settings
    rules = {
        "adam": keras.optimizers.Adam,
        "adamw": keras.optimizers.AdamW,
        "sgd": keras.optimizers.SGD,
    }
    return rules[name](
        learning_rate=_learning_rate(experiment, total_steps),
        global_clipnorm=experiment.global_clipnorm,
        **settings,
    )


def _learning_rate(
    experiment: Experiment, total_steps: int
) -> float | keras.optimizers.schedules.LearningRateSchedule:
    warmup = experiment.warmup_steps
    if warmup is None:
        return experiment.learning_rate
    if warmup >= total_steps:
        shorter = total_steps // 2
        logging.getLogger("tfmulti").warning(
            "tfmulti: The warm-up takes %d steps instead of %d: the whole "
            "run has %d.",
            shorter,
            warmup,
            total_steps,
        )
        warmup = shorter
    if not warmup:
        return keras.optimizers.schedules.CosineDecay(
            experiment.learning_rate, decay_steps=total_steps
        )
    return keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0,
        warmup_target=experiment.learning_rate,
        warmup_steps=warmup,
        decay_steps=total_steps - warmup,
    )
