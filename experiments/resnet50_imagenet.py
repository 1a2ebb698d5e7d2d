"""ResNet-50 on ImageNet, 90 epochs: the field's yardstick.

    tfds build imagenet2012            (once; see its page for the archives)
    python -m tfmulti.run --experiment resnet50_imagenet --strategy mirrored

or from TFRecord files: --data tfrecord:PATTERN --data_dir FOLDER. One sees
about 76 % of the held-out images classified right after 90 epochs (Goyal et
al., arXiv:1706.02677, table 1, with the rate of 0.1 for each 256 examples in
a step; theirs falls in steps, ours as a cosine). The convolutions want
--precision mixed_bfloat16 or mixed_float16 on GPUs.
"""

from __future__ import annotations

from tfmulti.config import Experiment

EXPERIMENT = Experiment(
    name="resnet50_imagenet",
    summary="ResNet-50 on ImageNet (your TFDS or TFRecord copy).",
    task="classification",
    model="resnet",
    model_config={"depth": 50, "image_shape": (224, 224, 3)},
    data="tfds:imagenet2012",
    epochs=90,
    global_batch_size=256,
    learning_rate=0.1,
    optimizer="sgd",
    warmup_steps=25_000,
)
