"""Communication settings -> what TensorFlow takes.

`auto` on GPUs is TensorFlow's own choice, NCCL. For mirrored replicas on
logical CPU devices, `auto` adds on one device instead of TensorFlow's ring of
collectives: in shared memory a ring copies for nothing. All-reduce inside a
tf.function, median of 25 interleaved runs on 2 cores, as a ratio to the ring
(TensorFlow 2.21):

                        2 replicas              4 replicas
                        25 MB    300 small      25 MB    300 small
    ring (TensorFlow)   1.00     1.00           1.00     1.00
    one device          0.41     1.00           0.33     1.08
    hierarchical copy   0.70     0.91           0.64     0.65   (1 pack)

It has no state between calls either: TensorFlow's ring numbers its messages
for the whole process, and two mirrored strategies in one process can take
each other's (seen as "Shape mismatch in the collective instance").
"""

from __future__ import annotations

import tensorflow as tf

from tfmulti.communication import Communication

_IMPLEMENTATIONS = {"auto": "AUTO", "nccl": "NCCL", "ring": "RING"}


def cross_device_ops(
    communication: Communication, device: str
) -> tf.distribute.CrossDeviceOps | None:
    """Gives the reduction of a MirroredStrategy.

    Args:
        communication: The settings.
        device: "GPU" or "CPU".

    Returns:
        The reduction; None leaves TensorFlow's own.
    """
    packs = 1 if communication.packs is None else communication.packs
    match communication.all_reduce:
        case "nccl":
            return tf.distribute.NcclAllReduce(num_packs=packs)
        case "hierarchical_copy":
            return tf.distribute.HierarchicalCopyAllReduce(num_packs=packs)
        case "one_device":
            return tf.distribute.ReductionToOneDevice()
        case _:
            if device == "CPU":
                return tf.distribute.ReductionToOneDevice()
            return None


def communication_options(
    communication: Communication,
) -> tf.distribute.experimental.CommunicationOptions:
    """Gives the options of a MultiWorkerMirroredStrategy."""
    return tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=communication.pack_bytes or 0,
        timeout_seconds=communication.timeout_s,
        implementation=tf.distribute.experimental.CommunicationImplementation(
            _IMPLEMENTATIONS[communication.all_reduce]
        ),
    )
