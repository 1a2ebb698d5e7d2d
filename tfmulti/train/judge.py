"""How good are generated images? A classifier of real ones is the judge.

    real images, labels --train--> judge --softmax--> the largest share
    generated images ------------>                    >= 0.9: it is sure

A generator is good when the judge is sure of most of its images (they look
like something) and names every class (it does not draw one thing only). It is
the idea of the Inception score (Salimans et al., arXiv:1606.03498) with a
judge of the data's own classes, so that the numbers can be understood.
"""

from __future__ import annotations

from dataclasses import dataclass

import keras
import numpy as np
from keras import layers

SURE = 0.9
EPOCHS = 15
BATCH = 64
# Of every five real examples one is kept back to measure the judge itself.
HELD_OUT_SHARE = 5


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the judge says of a set of images.

    Attributes:
        share_sure: Share of images of which it is at least 90 % sure.
        classes_seen: Classes that it named at least once, being sure.
    """

    share_sure: float
    classes_seen: int


class Judge:
    """A classifier of real images, trained when it is made.

    Args:
        images: [count, height, width, channels], scaled like the images that
            will be judged.
        labels: [count], from 0.
        classes: How many classes there are.
        seed: Of its weights, its batches and its held-out part.

    Attributes:
        accuracy: Its accuracy on real images that it was not trained on.
    """

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        *,
        classes: int,
        seed: int = 0,
    ):
        order = np.random.default_rng(seed).permutation(len(images))
        held = order[: len(order) // HELD_OUT_SHARE]
        used = order[len(order) // HELD_OUT_SHARE :]
        keras.utils.set_random_seed(seed)
        self._model = _convnet(images.shape[1:], classes)
        self._model.compile(
            optimizer=keras.optimizers.Adam(2e-3),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=False,
        )
        self._model.fit(
            images[used],
            labels[used],
            batch_size=BATCH,
            epochs=EPOCHS,
            verbose=0,
        )
        shares = self._shares(images[held])
        self.accuracy = float(np.mean(shares.argmax(-1) == labels[held]))

    def __call__(self, images: np.ndarray) -> Verdict:
        """Judges images [count, height, width, channels]."""
        shares = self._shares(images)
        sure = shares.max(axis=-1) >= SURE
        return Verdict(
            share_sure=float(sure.mean()),
            classes_seen=len(np.unique(shares.argmax(-1)[sure])),
        )

    def _shares(self, images: np.ndarray) -> np.ndarray:
        logits = self._model.predict(images, batch_size=500, verbose=0)
        shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return shares / shares.sum(axis=-1, keepdims=True)


def _convnet(shape: tuple[int, ...], classes: int) -> keras.Model:
    """Builds the judge, in float32 whatever the run's policy is."""
    flat = (
        layers.Flatten
        if min(shape[:2]) <= 16
        else layers.GlobalAveragePooling2D
    )
    settings = {"padding": "same", "activation": "relu", "dtype": "float32"}
    return keras.Sequential(
        [
            keras.Input(shape),
            layers.Conv2D(32, 3, **settings),
            layers.Conv2D(32, 3, **settings),
            layers.MaxPooling2D(2),
            layers.Conv2D(64, 3, **settings),
            flat(dtype="float32"),
            layers.Dropout(0.4),
            layers.Dense(classes, dtype="float32"),
        ]
    )
