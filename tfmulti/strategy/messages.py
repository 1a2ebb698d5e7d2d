"""TensorFlow's errors of typical misuse -> one message with the remedy.

Code that trains in a loop of its own fails in a few known ways when a
strategy is put around it, and what TensorFlow says then (an attribute of
None, a handle that is not available) does not tell what to do. `explain`
recognises these by their text and says it. Unknown errors stay as they are.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass

from tfmulti.errors import TfmultiError, UsageError

_LOOP = (
    "Put the step into a function and call strategy.run(step, args=(batch,)) "
    "inside a tf.function, with the data from "
    "strategy.experimental_distribute_dataset; or train with model.fit."
)
_SCOPE = (
    "Make models, optimizers and metrics inside `with strategy.scope():`, "
    "and compile there too."
)


@dataclass(frozen=True, kw_only=True)
class _Misuse:
    """One known failure.

    Attributes:
        pattern: Found in TensorFlow's text; groups fill `received`.
        received: What the code did.
        allowed: What works.
        remedy: What to change.
    """

    pattern: str
    received: str
    allowed: str
    remedy: str


_MISUSES = (
    _Misuse(
        # In the words of `tfmulti.data`, whose op runs inside TensorFlow.
        pattern=r"examples are missing, damaged or of an unknown format:\] "
        r"\[(?P<names>.*?)\](\n|$|\s)",
        received="examples that are missing, damaged or of an unknown "
        "format: {names}",
        allowed="whole files",
        remedy="Write these files again, or leave them out.",
    ),
    _Misuse(
        pattern=r"DistributedVariable\.handle is not available outside",
        received="a training step outside strategy.run: its gradient tape "
        "or optimizer meets variables that have a copy on every replica",
        allowed="steps that run on each replica",
        remedy=_LOOP,
    ),
    _Misuse(
        pattern=r"'NoneType' object has no attribute 'merge_call'",
        received="an optimizer that is applied outside strategy.run",
        allowed="steps that run on each replica",
        remedy=_LOOP,
    ),
    _Misuse(
        pattern=r"Mixing different tf\.distribute\.Strategy objects: "
        r".*_DefaultDistributionStrategy",
        received="an optimizer or a compile() outside the strategy's scope, "
        "for a model that was made inside it",
        allowed="model and optimizer of one scope",
        remedy=_SCOPE,
    ),
    _Misuse(
        pattern=r"Mixing different tf\.distribute\.Strategy objects: "
        r"<\S*?(?P<first>\w+) object\b.*? is not <\S*?(?P<second>\w+) object",
        received="a scope of a second strategy ({second}) inside that of "
        "{first}",
        allowed="one strategy for each process",
        remedy="Make the strategy once (tfmulti.init() gives the same one "
        "every time) and use it everywhere.",
    ),
    _Misuse(
        pattern=r"`colocate_vars_with` must only be passed a variable "
        r"created in this.*?<tf\.Variable '(?P<name>[^']+)'",
        received="the variable {name!r}, made outside the strategy's scope",
        allowed="variables of the strategy's scope",
        remedy=_SCOPE,
    ),
    _Misuse(
        pattern=r"_distributed_tf_update_step(?s:.*)AssertionError: *$",
        received="a model made outside the strategy's scope, with an "
        "optimizer made inside it",
        allowed="model and optimizer of one scope",
        remedy=_SCOPE,
    ),
    _Misuse(
        pattern=r"Shape mismatch in the collective instance .*? expected "
        r"shape (?P<one>\[[\d,]*\]) but another member in the group "
        r"expected shape (?P<other>\[[\d,]*\])",
        received="workers whose models or values differ: of shape {one} on "
        "one worker, {other} on another",
        allowed="the same model on every worker",
        remedy="Look for what depends on the worker: TF_CONFIG, its files, "
        "its flags.",
    ),
    _Misuse(
        pattern=r"Collective ops must be configured at program startup",
        received="MultiWorkerMirroredStrategy after TensorFlow was used",
        allowed="the strategy as the first use of TensorFlow in a process",
        remedy="Make the strategy (or call tfmulti.init()) at the top of the "
        "program.",
    ),
    _Misuse(
        pattern=r"Method requires being in cross-replica context",
        received="a call inside strategy.run that belongs around it (fit, "
        "strategy.run, strategy.reduce or a scope)",
        allowed="forward pass, gradients and optimizer inside strategy.run",
        remedy="Move that call out of the function given to strategy.run.",
    ),
    _Misuse(
        pattern=r"next\(iterator\) should be called from outside of replica_fn",
        received="fit or next(iterator) inside strategy.run",
        allowed="batches taken outside and given as arguments",
        remedy="Call strategy.run(step, args=(next(iterator),)).",
    ),
    _Misuse(
        pattern=r"Collective ops is aborted by: .*?(?:Connection reset by peer"
        r"|Socket closed|Broken pipe|failed to connect to all addresses)",
        received="a worker that has left while this one trains with it",
        allowed="workers that train together to the end",
        remedy="Look at the worker that ended first: an early exit, another "
        "number of epochs or steps, or a crash.",
    ),
)


def explain(error: BaseException) -> TfmultiError | None:
    """Says in one message what an exception of typical misuse means.

    Args:
        error: What the training program raised.

    Returns:
        The message with its remedy (an error of ours is one already), or
        None: nothing is known about it.
    """
    if isinstance(error, TfmultiError):
        return error
    # Where an assert of TensorFlow's has no words, its place says it.
    places = [f.name for f in traceback.extract_tb(error.__traceback__)]
    return explain_text(
        "\n".join([*places, f"{type(error).__name__}: {error}"])
    )


def explain_text(text: str) -> UsageError | None:
    """As `explain`, for a traceback's text, "TypeName: message" at its end."""
    for misuse in _MISUSES:
        found = re.search(misuse.pattern, text.strip(), re.DOTALL)
        if found:
            return UsageError(
                received=misuse.received.format(**found.groupdict()),
                allowed=misuse.allowed,
                remedy=misuse.remedy,
            )
    return None
