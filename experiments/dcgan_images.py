"""A DCGAN draws 64x64 images like those in your folder.

    python -m tfmulti.run --experiment dcgan_images --strategy mirrored \\
        --data images:FOLDER

Form and settings of Radford et al., arXiv:1511.06434, section 4. One sees
samples.png; some thousand images of one kind (faces, flowers) are enough.
"""

from __future__ import annotations

from tfmulti.config import YOURS, Experiment

EXPERIMENT = Experiment(
    name="dcgan_images",
    summary="A DCGAN draws 64x64 images like those in your folder.",
    task="gan",
    model="dcgan",
    model_config={"image_shape": (64, 64, 3)},
    data=YOURS,
    epochs=50,
    global_batch_size=128,
    learning_rate=2e-4,
)
