"""Which example is read at which step, and by which replica.

Everything follows from two numbers, the global step and the replica:

    global step --divmod--> epoch, step in the epoch
    step in the epoch ----> positions [k * batch, k * batch + rows)
    replica r of R -------> rows [rows * r // R, rows * (r + 1) // R) of them
    position -------------> example, by the epoch's permutation

Nothing depends on how many workers there were before, so a run may stop at
any step and go on with another number of them: the examples of a step are
the same for every division. This file defines the order and needs no
TensorFlow; `delivery` computes the same in a graph.

How an epoch ends when the batch does not divide the examples:

    "short"  the last batch has fewer rows, down to none for some replicas
    "drop"   the rest is left out; who is left out changes with the epoch
    "pad"    the last batch repeats examples, with sample weight zero
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfmulti.data.permutation import Key, key_of, permute
from tfmulti.errors import UsageError

ENDS = ("short", "drop", "pad")


def rows_of_replica(row_count: int, replica: int, replicas: int) -> range:
    """Gives the rows of a global batch that belong to one replica.

    The parts are consecutive, together they are the batch, and their sizes
    differ by one at most; with fewer rows than replicas some are empty.

    Args:
        row_count: Rows of the global batch.
        replica: Its number among all replicas of the job.
        replicas: How many there are, over all workers.
    """
    start = row_count * replica // replicas
    return range(start, row_count * (replica + 1) // replicas)


def steps_per_epoch(
    example_count: int, global_batch_size: int, end: str = "short"
) -> int:
    """Gives the number of steps in which an epoch is read.

    Raises:
        UsageError: There is not one batch in an epoch.
    """
    whole, rest = divmod(example_count, global_batch_size)
    steps = whole if end == "drop" else whole + bool(rest)
    if not steps:
        raise UsageError(
            received=f"--global_batch_size={global_batch_size} with "
            f"{example_count} examples",
            allowed=f"a batch of 1 to {example_count} examples"
            if example_count
            else "data that hold at least one example",
            remedy="Give a smaller global batch or more data.",
        )
    return steps


@dataclass(frozen=True, kw_only=True)
class Order:
    """The order in which the examples of a source are read.

    Attributes:
        example_count: Examples in the source.
        global_batch_size: Examples in one step, over all replicas.
        seed: Seed of the shuffled order.
        shuffle: Whether each epoch has an order of its own; else every epoch
            reads the examples as the source numbers them.
        end: One of `ENDS`.
    """

    example_count: int
    global_batch_size: int
    seed: int = 0
    shuffle: bool = True
    end: str = "short"

    def __post_init__(self) -> None:
        if self.end not in ENDS:
            raise UsageError(
                received=f"end={self.end!r}",
                allowed=", ".join(ENDS),
                remedy="Choose how an epoch ends.",
            )
        if self.global_batch_size < 1:
            raise UsageError(
                received=f"--global_batch_size={self.global_batch_size}",
                allowed="a whole number from 1",
                remedy="Give a larger value for --global_batch_size.",
            )
        steps_per_epoch(self.example_count, self.global_batch_size, self.end)

    @property
    def steps_per_epoch(self) -> int:
        """Steps in an epoch, at least one."""
        return steps_per_epoch(
            self.example_count, self.global_batch_size, self.end
        )

    @property
    def dropped_per_epoch(self) -> int:
        """Examples that an epoch leaves out."""
        read = self.steps_per_epoch * self.global_batch_size
        return max(0, self.example_count - read)

    def row_count(self, step: int) -> int:
        """Gives the rows of the batch at a global step, padding included."""
        if self.end != "short":
            return self.global_batch_size
        start = step % self.steps_per_epoch * self.global_batch_size
        return min(self.global_batch_size, self.example_count - start)

    def key(self, epoch: int) -> Key:
        """Gives the key of an epoch's permutation."""
        return key_of(self.seed, epoch)

    def positions(
        self, step: int, replica: int = 0, replicas: int = 1
    ) -> np.ndarray:
        """Gives the positions in the epoch of one replica's rows at a step.

        Returns:
            int64 [rows]; from `example_count` on they are padding.
        """
        rows = rows_of_replica(self.row_count(step), replica, replicas)
        start = step % self.steps_per_epoch * self.global_batch_size
        return np.arange(start + rows.start, start + rows.stop, dtype=np.int64)

    def indices(
        self, step: int, replica: int = 0, replicas: int = 1
    ) -> np.ndarray:
        """Gives the examples of one replica's rows at a global step.

        Returns:
            int64 [rows], each in [0, example_count). Padding rows repeat
            the epoch from its first position.
        """
        positions = self.positions(step, replica, replicas)
        positions %= self.example_count
        if not self.shuffle:
            return positions
        key = self.key(step // self.steps_per_epoch)
        return permute(positions, self.example_count, key)

    def weights(
        self, step: int, replica: int = 0, replicas: int = 1
    ) -> np.ndarray:
        """Gives the sample weights of one replica's rows at a global step.

        Returns:
            float32 [rows]: one for an example, zero for padding.
        """
        positions = self.positions(step, replica, replicas)
        return (positions < self.example_count).astype(np.float32)
