"""Where TensorFlow Datasets keeps the files of a prepared data set.

The data set's own description says which files belong to which split and in
which format; they are then read as any other record files. Nothing is
downloaded: on many hosts at once that would go wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfmulti.data.spec import DataSpec, find_tfds
from tfmulti.errors import UsageError

_VALIDATION = ("validation", "test")


@dataclass(frozen=True, kw_only=True)
class TfdsParts:
    """The files of a prepared data set.

    Attributes:
        name: Name and version.
        kind: "tfrecord" or "array_record".
        train: Files of the train split.
        validation: Files of the validation or else the test split, or ().
        num_classes: Classes of the feature "label"; None without it.
        class_names: Their names.
        licence: As the data set states it; "" if it does not.
    """

    name: str
    kind: str
    train: tuple[Path, ...]
    validation: tuple[Path, ...]
    num_classes: int | None
    class_names: tuple[str, ...]
    licence: str


def find_parts(spec: DataSpec, data_dir: str | None) -> TfdsParts:
    """Reads a prepared data set's description.

    Args:
        spec: "tfds:NAME", "tfds:NAME/CONFIG" or either with ":VERSION".
        data_dir: Where TensorFlow Datasets keeps its data.

    Raises:
        UsageError: Not prepared there, without a train split, or in a format
            without random access.
    """
    import tensorflow_datasets as tfds

    folder = _newest(spec, find_tfds(spec, data_dir))
    builder = tfds.builder_from_directory(folder)
    info = builder.info
    if "train" not in info.splits:
        raise UsageError(
            received=f"--data={spec} with the splits {sorted(info.splits)}",
            allowed="data sets with a train split",
            remedy="Choose another data set.",
        )
    held_out = next((n for n in _VALIDATION if n in info.splits), None)
    label = _label(info.features)
    return TfdsParts(
        name=info.full_name,
        kind=_kind(spec, info.file_format.value),
        train=_files(info, "train"),
        validation=_files(info, held_out) if held_out else (),
        num_classes=label.num_classes if label else None,
        class_names=tuple(label.names) if label else (),
        licence=info.redistribution_info.license or "",
    )


def _newest(spec: DataSpec, folder: Path) -> Path:
    """Gives the folder of the newest prepared version of the wanted one."""
    name, _, version = spec.argument.partition(":")
    _, _, config = name.partition("/")
    found = [
        path.parent
        for path in (folder / config).rglob("dataset_info.json")
        if not version or path.parent.name == version
    ]
    if not found:
        raise UsageError(
            received=f"--data={spec}",
            allowed=f"a data set prepared in {folder}",
            remedy=f"Prepare it once, for all workers: tfds build "
            f"{spec.argument} --data_dir={folder.parent}",
        )
    return max(found, key=lambda path: _version(path.name))


def _version(name: str) -> tuple[int, ...]:
    numbers = name.split(".")
    if not all(map(str.isdigit, numbers)):
        return ()
    return tuple(int(n) for n in numbers)


def _kind(spec: DataSpec, file_format: str) -> str:
    if file_format not in ("tfrecord", "array_record"):
        raise UsageError(
            received=f"--data={spec}, kept as {file_format}",
            allowed="tfrecord, array_record",
            remedy=f"Prepare it again: tfds build {spec.argument} "
            "--file_format=array_record",
        )
    return file_format


def _files(info: Any, split: str) -> tuple[Path, ...]:
    return tuple(Path(path) for path in info.splits[split].filepaths)


def _label(features: Any) -> Any:
    """Gives the feature of the class label, or None."""
    # A `FeaturesDict` is no mapping, and other features have no keys.
    keys = features.keys() if hasattr(features, "keys") else ()
    label = features["label"] if "label" in keys else None
    return label if hasattr(label, "num_classes") else None
