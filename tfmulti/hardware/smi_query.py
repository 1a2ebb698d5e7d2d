"""What `nvidia-smi -q -x` says of each GPU.

The XML form is read, since its tags have kept their names better than the
text's layout. Three generations are in use (nvsmi_device_v11 to v13.dtd):

    v11  clocks_throttle_reasons   power_readings/power_limit
    v12  clocks_event_reasons      gpu_power_readings/current_power_limit
    v13  as v12, finer ECC counters

A value that a GPU does not have is "N/A" and becomes None here.

https://docs.nvidia.com/deploy/nvidia-smi/
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

COMMAND = ("nvidia-smi", "-q", "-x")


@dataclass(frozen=True, kw_only=True)
class GpuState:
    """One GPU as the driver sees it now; None: the driver does not say.

    Attributes:
        index: Its place in PCI bus order.
        name: Its product name.
        bus_id: Its PCI address, "00000000:01:00.0".
        uuid: "GPU-" and 32 hexadecimal digits.
        architecture: "Ampere", "Hopper", ...
        persistence: Whether the driver keeps it initialised.
        compute_mode: "Default", "Exclusive_Process" or "Prohibited".
        mig: Whether it is divided into slices.
        ecc: Whether memory errors are corrected.
        ecc_uncorrected: Uncorrected errors since the driver was loaded.
        remap_pending: A faulty row is replaced at the next reset.
        remap_failure: No spare row is left for a faulty one.
        recovery: What the driver asks for after a fault: "Reset", "Reboot",
            "Drain and Reset"; None: nothing.
        pcie_generation: The link's generation now; falls when idle.
        pcie_generation_gpu: The highest that the GPU can do.
        pcie_generation_host: The highest that its slot can do.
        pcie_width: Lanes in use now.
        pcie_width_max: Lanes that GPU and slot could use.
        busy: Whether its clocks are not held low for want of work.
        power_limit_w: The most that it may draw now.
        power_default_w: The most that it may draw as it was made.
        clock_setting_mhz: The clock that programs are set to run at.
        clock_default_mhz: The same as it was made.
        slowdowns: Active reasons for low clocks, without "gpu_idle".
        temperature_c: Of the chip.
        memory_bytes: Its memory.
        memory_used_bytes: What is taken of it.
        fabric: State of the NVSwitch fabric: "Completed", "In Progress"; None
            where there is none.
    """

    index: int
    name: str
    bus_id: str
    uuid: str = ""
    architecture: str | None = None
    persistence: bool | None = None
    compute_mode: str | None = None
    mig: bool | None = None
    ecc: bool | None = None
    ecc_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failure: bool | None = None
    recovery: str | None = None
    pcie_generation: int | None = None
    pcie_generation_gpu: int | None = None
    pcie_generation_host: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    busy: bool = False
    power_limit_w: float | None = None
    power_default_w: float | None = None
    clock_setting_mhz: int | None = None
    clock_default_mhz: int | None = None
    slowdowns: tuple[str, ...] = ()
    temperature_c: int | None = None
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    fabric: str | None = None


@dataclass(frozen=True, kw_only=True)
class SmiReport:
    """The driver and its GPUs, by index.

    Attributes:
        driver_version: "535.54.03".
        cuda_version: The newest CUDA that the driver speaks, "12.2".
        gpus: The GPUs.
    """

    driver_version: str | None
    cuda_version: str | None
    gpus: tuple[GpuState, ...]


def parse_query(text: str) -> SmiReport:
    """Reads the output of `COMMAND`.

    Raises:
        ValueError: It is not nvidia-smi's XML; the message is what it said.
    """
    # Warnings ("infoROM is corrupted") may stand before and after it.
    form = re.search(r"<nvidia_smi_log>.*</nvidia_smi_log>", text, re.DOTALL)
    try:
        root = ElementTree.fromstring(form[0] if form else "")
    except ElementTree.ParseError:
        said = " ".join(text.split())
        raise ValueError(said or "nvidia-smi said nothing") from None
    return SmiReport(
        driver_version=_text(root, "driver_version"),
        cuda_version=_text(root, "cuda_version"),
        gpus=tuple(
            _gpu(gpu, index) for index, gpu in enumerate(root.findall("gpu"))
        ),
    )


def _gpu(gpu: ElementTree.Element, index: int) -> GpuState:
    link = "pci/pci_gpu_link_info"
    reasons = _active(gpu)
    return GpuState(
        index=index,
        name=_text(gpu, "product_name") or "NVIDIA GPU",
        bus_id=gpu.get("id", ""),
        uuid=_text(gpu, "uuid") or "",
        architecture=_text(gpu, "product_architecture"),
        persistence=_flag(gpu, "persistence_mode"),
        compute_mode=_text(gpu, "compute_mode"),
        mig=_flag(gpu, "mig_mode/current_mig"),
        ecc=_flag(gpu, "ecc_mode/current_ecc"),
        ecc_uncorrected=_uncorrected(gpu),
        remap_pending=_flag(
            gpu,
            "remapped_rows/remapped_row_pending",
            "retired_pages/pending_retirement",
        ),
        remap_failure=_flag(gpu, "remapped_rows/remapped_row_failure"),
        recovery=_recovery(gpu),
        pcie_generation=_whole(gpu, f"{link}/pcie_gen/current_link_gen"),
        pcie_generation_gpu=_whole(
            gpu,
            f"{link}/pcie_gen/max_device_link_gen",
            f"{link}/pcie_gen/max_link_gen",
        ),
        pcie_generation_host=_whole(gpu, f"{link}/pcie_gen/max_host_link_gen"),
        pcie_width=_whole(gpu, f"{link}/link_widths/current_link_width"),
        pcie_width_max=_whole(gpu, f"{link}/link_widths/max_link_width"),
        busy="gpu_idle" not in reasons
        and (_whole(gpu, "utilization/gpu_util") or 0) > 0,
        power_limit_w=_number(
            gpu,
            "gpu_power_readings/current_power_limit",
            "gpu_power_readings/power_limit",
            "power_readings/power_limit",
        ),
        power_default_w=_number(
            gpu,
            "gpu_power_readings/default_power_limit",
            "power_readings/default_power_limit",
        ),
        clock_setting_mhz=_whole(gpu, "applications_clocks/graphics_clock"),
        clock_default_mhz=_whole(
            gpu, "default_applications_clocks/graphics_clock"
        ),
        slowdowns=tuple(name for name in reasons if name != "gpu_idle"),
        temperature_c=_whole(gpu, "temperature/gpu_temp"),
        memory_bytes=_mebibytes(gpu, "fb_memory_usage/total"),
        memory_used_bytes=_mebibytes(gpu, "fb_memory_usage/used"),
        fabric=_text(gpu, "fabric/state"),
    )


def _active(gpu: ElementTree.Element) -> tuple[str, ...]:
    """Lists the active reasons for low clocks, by their bare names."""
    return tuple(
        re.sub(r"clocks_(event|throttle)_reason_", "", reason.tag)
        for group in ("clocks_event_reasons", "clocks_throttle_reasons")
        for reason in gpu.findall(f"{group}/*")
        if reason.text == "Active"
    )


def _uncorrected(gpu: ElementTree.Element) -> int | None:
    """Sums the uncorrected errors since the driver was loaded."""
    counters = [
        *gpu.findall("ecc_errors/volatile/double_bit/total"),
        *(
            counter
            for counter in gpu.findall("ecc_errors/volatile/*")
            if "ram_uncorrectable" in counter.tag
        ),
    ]
    counts = [
        int(text)
        for text in (counter.text or "" for counter in counters)
        if text.isdecimal()
    ]
    return sum(counts) if counts else None


def _recovery(gpu: ElementTree.Element) -> str | None:
    """Reads v13's action, or the flag that drivers before it have."""
    if _flag(gpu, "gpu_reset_status/reset_required"):
        return "Reset"
    action = _text(gpu, "gpu_recovery_action")
    return None if action == "None" else action


def _text(element: ElementTree.Element, *paths: str) -> str | None:
    """Gives the first of the values that is there and says something."""
    for path in paths:
        text = (element.findtext(path) or "").strip()
        if text and text not in ("N/A", "[N/A]"):
            return text
    return None


def _flag(element: ElementTree.Element, *paths: str) -> bool | None:
    known = {"Enabled": True, "Yes": True, "Disabled": False, "No": False}
    return known.get(_text(element, *paths) or "")


def _number(element: ElementTree.Element, *paths: str) -> float | None:
    found = re.match(r"[\d.]+", _text(element, *paths) or "")
    return float(found[0]) if found else None


def _whole(element: ElementTree.Element, *paths: str) -> int | None:
    number = _number(element, *paths)
    return None if number is None else int(number)


def _mebibytes(element: ElementTree.Element, *paths: str) -> int | None:
    number = _number(element, *paths)
    return None if number is None else int(number) * 2**20
