"""From a data spec to what training wants: two sources and the facts.

Where the data name a held-out part, that is validated on; else a fixed part
of them is held out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tfmulti.data import digits, python_source
from tfmulti.data.load_images import load_images
from tfmulti.data.load_records import load_records, load_tfds
from tfmulti.data.spec import DataSpec, check, find_files, parse
from tfmulti.data.splits import BYTE_VALUES, DataInfo, DataSplits, Wishes
from tfmulti.data.synthetic import SyntheticImages, SyntheticTokens
from tfmulti.data.windows import (
    WindowSource,
    open_stream,
    split_tail,
    stream_of,
)
from tfmulti.errors import UsageError

HELD_OUT_TEXT = 0.05
SYNTHETIC_EXAMPLES = 2048
SYNTHETIC_CLASSES = 10

_TEXT_KINDS = ("python_source", "text")
_IMAGE_KINDS = ("digits", "images")


def load(
    spec: str,
    data_dir: str | None = None,
    *,
    task: str,
    image_shape: tuple[int, int, int] | None = None,
    num_classes: int | None = None,
    context: int | None = None,
    vocabulary_size: int | None = None,
    seed: int = 0,
) -> DataSplits:
    """Opens the data that a spec names.

    Args:
        spec: What `--data` says; `spec` has the list.
        data_dir: The folder that relative paths count from.
        task: What an example is: one of `splits.TASKS`.
        image_shape: (height, width, channels) that the model wants; None:
            the data's own, or 64 x 64 x 3 where files differ.
        num_classes: Classes that the model has, where the data do not say.
        context: Tokens in an input; None: 128.
        vocabulary_size: For made-up tokens; None: 256.
        seed: Seed of made-up examples; real data do not depend on it.

    Raises:
        UsageError: The data are not there, damaged, or not of the task.
    """
    check(spec, data_dir)
    wishes = Wishes(
        task=task,
        image_shape=image_shape,
        num_classes=num_classes,
        context=context,
        vocabulary_size=vocabulary_size,
        seed=seed,
    )
    parsed = parse(spec)
    _check_task(parsed, task)
    return _LOAD[parsed.kind](parsed, data_dir, wishes)


def _digits(
    spec: DataSpec, data_dir: str | None, wishes: Wishes
) -> DataSplits:
    if wishes.image_shape not in (None, digits.IMAGE_SHAPE):
        raise UsageError(
            received=f"--data=digits for images of {wishes.image_shape}",
            allowed=f"models for images of {digits.IMAGE_SHAPE}",
            remedy="Choose other data, or set the model's image size.",
        )
    train, test = digits.sources(wishes.pixel_range, wishes.with_labels)
    info = DataInfo(
        description=digits.DESCRIPTION,
        licence=digits.LICENCE,
        num_classes=len(digits.CLASSES),
        class_names=digits.CLASSES,
        image_shape=digits.IMAGE_SHAPE,
        pixel_range=wishes.pixel_range,
    )
    return DataSplits(train=train, validation=test, info=info)


def _python_source(
    spec: DataSpec, data_dir: str | None, wishes: Wishes
) -> DataSplits:
    train, validation = python_source.sources(wishes.context_or_default)
    info = DataInfo(
        description=python_source.DESCRIPTION,
        licence=python_source.LICENCE,
        vocabulary_size=BYTE_VALUES,
        context=wishes.context_or_default,
    )
    return DataSplits(train=train, validation=validation, info=info)


def _text(spec: DataSpec, data_dir: str | None, wishes: Wishes) -> DataSplits:
    paths = find_files(spec, data_dir)
    head, tail = split_tail(stream_of(paths), HELD_OUT_TEXT, at_files=False)
    context = wishes.context_or_default
    validation = None
    if len(tail) > context:
        validation = WindowSource(open_stream(tail), context)
    info = DataInfo(
        description=f"{len(paths)} text files, as bytes",
        vocabulary_size=BYTE_VALUES,
        context=context,
    )
    train = WindowSource(open_stream(head), context)
    return DataSplits(train=train, validation=validation, info=info)


def _synthetic(
    spec: DataSpec, data_dir: str | None, wishes: Wishes
) -> DataSplits:
    make = _tokens if wishes.task == "language_model" else _pixels
    return make(wishes)


def _pixels(wishes: Wishes) -> DataSplits:
    classes = wishes.num_classes or SYNTHETIC_CLASSES
    shape = wishes.image_shape or digits.IMAGE_SHAPE

    def part(count: int, first: int) -> SyntheticImages:
        return SyntheticImages(
            count=count,
            first=first,
            image_shape=shape,
            num_classes=classes if wishes.with_labels else None,
            pixel_range=wishes.pixel_range,
            seed=wishes.seed,
        )

    info = DataInfo(
        description=f"{SYNTHETIC_EXAMPLES} made-up images",
        num_classes=classes,
        image_shape=shape,
        pixel_range=wishes.pixel_range,
    )
    held_out = SYNTHETIC_EXAMPLES // 8
    return DataSplits(
        train=part(SYNTHETIC_EXAMPLES, 0),
        validation=part(held_out, SYNTHETIC_EXAMPLES),
        info=info,
    )


def _tokens(wishes: Wishes) -> DataSplits:
    context = wishes.context_or_default
    vocabulary_size = wishes.vocabulary_size or BYTE_VALUES

    def part(count: int, first: int) -> SyntheticTokens:
        return SyntheticTokens(
            count=count,
            first=first,
            context=context,
            vocabulary_size=vocabulary_size,
            seed=wishes.seed,
        )

    info = DataInfo(
        description=f"{SYNTHETIC_EXAMPLES} made-up token sequences",
        vocabulary_size=vocabulary_size,
        context=context,
    )
    held_out = SYNTHETIC_EXAMPLES // 8
    return DataSplits(
        train=part(SYNTHETIC_EXAMPLES, 0),
        validation=part(held_out, SYNTHETIC_EXAMPLES),
        info=info,
    )


_LOAD: Mapping[str, Callable[[DataSpec, str | None, Wishes], DataSplits]] = {
    "digits": _digits,
    "python_source": _python_source,
    "synthetic": _synthetic,
    "text": _text,
    "images": load_images,
    "tfrecord": load_records,
    "array_record": load_records,
    "tfds": load_tfds,
}


def _check_task(spec: DataSpec, task: str) -> None:
    wants_text = task == "language_model"
    if spec.kind in (_IMAGE_KINDS if wants_text else _TEXT_KINDS):
        other = "text" if wants_text else "images"
        raise UsageError(
            received=f"--data={spec} for the task {task}",
            allowed=f"{other}, such as "
            + ("python_source or text:PATTERN" if wants_text else "digits"),
            remedy=f"Give {other}, or choose another experiment.",
        )
