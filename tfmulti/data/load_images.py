"""Image folders as training data.

    DIR/cat/1.jpg  DIR/dog/2.jpg                 classes; a tenth is held out
    DIR/train/cat/1.jpg  DIR/val/cat/2.jpg       classes and a held-out part
    DIR/1.jpg  DIR/2.jpg                         no classes: for a GAN
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tfmulti.data.images import ImageSource
from tfmulti.data.spec import DataSpec, find_images, resolve
from tfmulti.data.splits import DataInfo, DataSplits, Wishes, held_out
from tfmulti.errors import UsageError

HELD_OUT = 0.1
DEFAULT_SHAPE = (64, 64, 3)

_TRAIN = ("train", "training")
_VALIDATION = ("validation", "valid", "val", "test")


def load_images(
    spec: DataSpec, data_dir: str | None, wishes: Wishes
) -> DataSplits:
    """Opens a folder of images.

    Raises:
        UsageError: The folder is missing or holds no images, or the task
            needs classes and there are none.
    """
    folder = resolve(spec.argument, data_dir)
    paths = find_images(spec, data_dir)
    train_root = _named_part(folder, _TRAIN)
    validation_root = _named_part(folder, _VALIDATION)
    if train_root and validation_root:
        train = [p for p in paths if train_root in p.parents]
        validation = [p for p in paths if validation_root in p.parents]
    else:
        train_root = validation_root = folder
        kept, held = held_out(len(paths), HELD_OUT)
        train = [paths[i] for i in kept]
        validation = [paths[i] for i in held]
    shape = wishes.image_shape or DEFAULT_SHAPE
    classes: tuple[str, ...] = ()
    if wishes.with_labels:
        classes = _classes(spec, train, train_root)
        _classes_fit(spec, classes, wishes.num_classes)

    def source(part: Sequence[Path], root: Path) -> ImageSource:
        labels = _labels(spec, part, root, classes) if classes else None
        return ImageSource(part, labels, shape, wishes.pixel_range)

    return DataSplits(
        train=source(train, train_root),
        validation=source(validation, validation_root) if validation else None,
        info=DataInfo(
            description=f"{len(paths)} images in {folder.name}",
            num_classes=len(classes) or None,
            class_names=classes,
            image_shape=shape,
            pixel_range=wishes.pixel_range,
        ),
    )


def _named_part(folder: Path, names: Sequence[str]) -> Path | None:
    found = (folder / name for name in names)
    return next((path for path in found if path.is_dir()), None)


def _class_of(spec: DataSpec, path: Path, root: Path) -> str:
    if path.parent == root:
        raise UsageError(
            received=f"--data={spec} with {path} in no class folder",
            allowed="a folder for each class",
            remedy="Put every image into its class's folder.",
        )
    return path.relative_to(root).parts[0]


def _classes(
    spec: DataSpec, paths: Sequence[Path], root: Path
) -> tuple[str, ...]:
    return tuple(sorted({_class_of(spec, path, root) for path in paths}))


def _labels(
    spec: DataSpec, paths: Sequence[Path], root: Path, classes: Sequence[str]
) -> list[int]:
    number = {name: i for i, name in enumerate(classes)}
    names = [_class_of(spec, path, root) for path in paths]
    unknown = sorted(set(names) - set(classes))
    if unknown:
        raise UsageError(
            received=f"--data={spec} with held-out images of {unknown}",
            allowed="classes that have training images",
            remedy="Add training images of these classes, or remove them.",
        )
    return [number[name] for name in names]


def _classes_fit(
    spec: DataSpec, classes: Sequence[str], num_classes: int | None
) -> None:
    if num_classes is not None and len(classes) > num_classes:
        raise UsageError(
            received=f"--data={spec} with {len(classes)} classes",
            allowed=f"at most {num_classes}, as the model has",
            remedy="Give the model more classes.",
        )
