"""Keras's backend must be TensorFlow: tf.distribute trains nothing else.

Asked of the environment before Keras is imported, which fixes the backend.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfmulti.errors import UsageError

BACKEND_VARIABLE = "KERAS_BACKEND"


def check_backend(env: Mapping[str, str]) -> None:
    """Refuses an environment that asks for another backend.

    Args:
        env: The environment in which Keras is or will be imported.

    Raises:
        UsageError: It names another backend than TensorFlow.
    """
    backend = env.get(BACKEND_VARIABLE) or "tensorflow"
    if backend != "tensorflow":
        raise UsageError(
            received=f"{BACKEND_VARIABLE}={backend}",
            allowed="tensorflow, whose strategies train the replicas",
            remedy=f"Unset {BACKEND_VARIABLE}, or set it to tensorflow.",
        )
