"""A recording keeps what was read, and nothing that nobody reads."""

from __future__ import annotations

import pytest

from tfmulti.diagnose import dump, gather, load

FILES = {
    "/proc/meminfo": "MemTotal:  100 kB\nMemFree:  7 kB\n",
    "/proc/cpuinfo": "processor : 0\nflags\t\t: fpu sse\n\nprocessor : 1\n",
    "/proc/self/cgroup": "0::/a\n",
    "/sys/fs/cgroup/a/memory.max": "50\n",
    "/proc/self/limits": "",
}


def _gather(**changes):
    given = {
        "read": FILES.get,
        "run": lambda command: None,
        "probe": lambda: None,
        "env": {},
    }
    return gather(**(given | changes))


def test_files_that_are_read_are_kept():
    assert _gather() == {
        "/proc/meminfo": "MemTotal:  100 kB",
        "/proc/cpuinfo": "flags\t\t: fpu sse",
        "/proc/self/cgroup": "0::/a\n",
        "/sys/fs/cgroup/a/memory.max": "50\n",
    }


def test_programs_and_environment_are_kept():
    recording = _gather(
        read=lambda path: None,
        run=lambda command: f"{command[0]} said\n",
        probe=lambda: "{}",
        env={"CUDA_VISIBLE_DEVICES": "", "HOME": "/root"},
    )
    assert recording["$ nvidia-smi topo -m"] == "nvidia-smi said\n"
    assert recording["$ df -B1 /dev/shm"] == "df said\n"
    assert recording["environment"] == "CUDA_VISIBLE_DEVICES="
    assert "HOME" not in dump(recording)


def test_it_survives_being_written():
    recording = {"$ a -b": "one\n\n  two\n", "/c": "\tthree\n"}
    assert load(dump(recording)) == recording


@pytest.mark.parametrize("text", ["", "no recording\n"])
def test_what_is_no_recording_is_an_error(text):
    with pytest.raises(ValueError, match="==> NAME <=="):
        load(text)
