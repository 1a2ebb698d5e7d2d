"""What `--data` says, read and checked before anything starts.

A data spec is a kind, and for some kinds an argument after a colon:

    digits                 the optical digits that ship with tfmulti
    python_source          the Python standard library's own source text
    synthetic              made-up examples of the shape that the model wants
    text:PATTERN           files read as one stream of bytes
    images:DIR             JPEG and PNG files, a folder for each class or none
    tfrecord:PATTERN       TFRecord files of tf.train.Example
    array_record:PATTERN   ArrayRecord files of tf.train.Example
    tfds:NAME              a data set that TensorFlow Datasets has prepared

A PATTERN is a file, a folder or a glob ("corpus/**/*.txt"). Relative paths
count from `--data_dir` if it is given and else from the working directory.
Nothing here imports TensorFlow, so that a wrong path costs no start of one.
"""

from __future__ import annotations

import glob
import os
import re
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tfmulti.errors import UsageError

PLAIN_KINDS = ("digits", "python_source", "synthetic")
ARGUMENT_KINDS: Mapping[str, str] = {
    "text": "PATTERN",
    "images": "DIR",
    "tfrecord": "PATTERN",
    "array_record": "PATTERN",
    "tfds": "NAME",
}
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png")
TFDS_DEFAULT_DIR = "~/tensorflow_datasets"

_ALLOWED = ", ".join(
    [*PLAIN_KINDS, *(f"{k}:{v}" for k, v in ARGUMENT_KINDS.items())]
)
_TFDS_NAME = re.compile(r"\w+(/[\w.\-]+)?(:\d+\.\d+\.\d+)?")


@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """A data spec in its parts.

    Attributes:
        kind: One of `PLAIN_KINDS` or of the keys of `ARGUMENT_KINDS`.
        argument: What follows the colon; "" for the plain kinds.
    """

    kind: str
    argument: str = ""

    def __post_init__(self) -> None:
        if self.kind not in PLAIN_KINDS and self.kind not in ARGUMENT_KINDS:
            raise _error(self, _ALLOWED, "Choose one of these for --data.")
        wants = ARGUMENT_KINDS.get(self.kind)
        if wants and not self.argument:
            raise _error(
                self,
                f"{self.kind}:{wants}",
                f"Say which after a colon: {self.kind}:{wants}.",
            )
        if not wants and self.argument:
            raise _error(self, self.kind, f"Leave out ':{self.argument}'.")
        if self.kind == "tfds" and not _TFDS_NAME.fullmatch(self.argument):
            raise _error(
                self,
                "tfds:NAME, tfds:NAME/CONFIG or tfds:NAME:1.2.3",
                "Give the data set's name as `tfds build` takes it.",
            )

    def __str__(self) -> str:
        return f"{self.kind}:{self.argument}" if self.argument else self.kind


def parse(spec: str) -> DataSpec:
    """Reads a data spec.

    Raises:
        UsageError: Unknown kind, or an argument missing or not wanted.
    """
    kind, _, argument = spec.partition(":")
    return DataSpec(kind=kind, argument=argument)


def check(spec: str, data_dir: str | None = None) -> None:
    """Finds out whether the data that a spec names are there.

    Looks at names and sizes only; it opens no file.

    Args:
        spec: What `--data` says.
        data_dir: The folder that relative paths count from; None: the
            working directory.

    Raises:
        UsageError: Unknown kind; a folder that is missing or holds nothing
            that can be read; a pattern that matches nothing.
    """
    parsed = parse(spec)
    _folder_exists(parsed, data_dir)
    if parsed.kind in _FIND:
        _FIND[parsed.kind](parsed, data_dir)


def resolve(path: str, data_dir: str | None) -> Path:
    """Gives the absolute path (or glob) that a spec's argument means."""
    base = Path(data_dir).expanduser() if data_dir else Path()
    return Path(os.path.abspath(base / Path(path).expanduser()))


def find_files(spec: DataSpec, data_dir: str | None) -> tuple[Path, ...]:
    """Lists the files of a spec with a PATTERN, sorted by path.

    A folder stands for the files directly in it, and hidden files (their
    name starts with a dot) are left out.

    Raises:
        UsageError: Nothing matches, or everything that matches is empty.
    """
    target = resolve(_local(spec), data_dir)
    if target.is_dir():
        found = [p for p in target.iterdir() if not p.name.startswith(".")]
    else:
        found = [Path(p) for p in glob.glob(str(target), recursive=True)]
    files = sorted(p for p in found if p.is_file())
    if not files:
        raise _error(
            spec,
            "a file, a folder with files or a pattern that matches one",
            f"Nothing matches {target}; correct the path or --data_dir.",
        )
    if not any(p.stat().st_size for p in files):
        raise _error(
            spec,
            "files that are not empty",
            f"All {len(files)} files at {target} have 0 bytes; look whether "
            "they were written in full.",
        )
    return tuple(files)


def find_images(spec: DataSpec, data_dir: str | None) -> tuple[Path, ...]:
    """Lists the images of an "images" spec, sorted by path.

    Raises:
        UsageError: The folder is missing, or no image lies in it.
    """
    folder = resolve(_local(spec), data_dir)
    if not folder.is_dir():
        raise _error(
            spec,
            "a folder of images",
            f"There is no folder {folder}; correct the path or --data_dir.",
        )
    images = tuple(sorted(_walk_images(folder)))
    if not images:
        raise _error(
            spec,
            f"a folder with {', '.join(IMAGE_SUFFIXES)} files in it or in "
            "one folder for each class",
            f"No such file lies in {folder}; put images there.",
        )
    return images


def find_tfds(spec: DataSpec, data_dir: str | None) -> Path:
    """Gives the folder where TensorFlow Datasets keeps a prepared data set.

    Raises:
        UsageError: It has not been prepared there.
    """
    root = resolve(data_dir or TFDS_DEFAULT_DIR, None)
    folder = root / re.split("[/:]", spec.argument)[0]
    if not folder.is_dir():
        raise _error(
            spec,
            f"a data set prepared in {root}",
            "Prepare it once, for all workers: tfds build "
            f"{spec.argument} --data_dir={root}",
        )
    return folder


def find_python_source() -> Path:
    """Gives the folder of this Python's standard library.

    Raises:
        UsageError: This Python ships no source text.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    if not (folder / "os.py").is_file():
        raise UsageError(
            received=f"--data=python_source, but {folder} holds no .py files",
            allowed="a Python whose standard library is installed as source",
            remedy="Use --data=text:PATTERN with text of your own.",
        )
    return folder


_FIND: Mapping[str, Callable[[DataSpec, str | None], object]] = {
    "text": find_files,
    "tfrecord": find_files,
    "array_record": find_files,
    "images": find_images,
    "tfds": find_tfds,
    "python_source": lambda spec, data_dir: find_python_source(),
}


def _walk_images(folder: Path) -> Iterator[Path]:
    """Gives the images in a folder and, for classes, in its folders."""
    for parent, folders, names in os.walk(folder):
        # In place: os.walk then leaves hidden folders out.
        folders[:] = [f for f in folders if not f.startswith(".")]
        for name in names:
            suffix = os.path.splitext(name)[1].lower()
            if suffix in IMAGE_SUFFIXES and not name.startswith("."):
                yield Path(parent, name)


def _local(spec: DataSpec) -> str:
    if "://" in spec.argument:
        raise _error(
            spec,
            "a path on this host",
            "Mount or copy the data; random access wants local files.",
        )
    return spec.argument


def _folder_exists(spec: DataSpec, data_dir: str | None) -> None:
    reads_it = spec.kind in ARGUMENT_KINDS
    if data_dir and reads_it and not resolve(data_dir, None).is_dir():
        raise UsageError(
            received=f"--data_dir={data_dir}",
            allowed="a folder that exists",
            remedy=f"There is no {resolve(data_dir, None)}; correct it.",
        )


def _error(spec: DataSpec, allowed: str, remedy: str) -> UsageError:
    return UsageError(
        received=f"--data={spec}", allowed=allowed, remedy=remedy
    )
