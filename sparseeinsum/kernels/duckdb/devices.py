"""Kernels: chooses the device that computes the large matrix products of this process."""

import os

from sparseeinsum.errors import ArgumentError
from sparseeinsum.kernels.duckdb.library import gpu_in_use, use_gpu
from sparseeinsum.kernels.gpu_products import open_gpu

VARIABLE = "SPARSEEINSUM_DEVICE"  # the environment variable that names the device
_PROCESSOR, _GPU = DEVICES = ("cpu", "cuda")
_APPLIED: list[str] = []  # the values of the variable that were applied


def set_device(device: str) -> None:
    """Choose what computes the large matrix products of all DuckDB databases of this process from now on.

    A GPU computes a product if to copy its matrices there and back takes less time than the processor would need; the
    limit is measured by this call, and plans are chosen with the speed of the GPU. If its memory is too small, the
    processor computes the product. Runs with `deterministic=True` use the processor alone.

    Args:
        device: `cpu`, the default, or `cuda`: the GPU that cupy uses. The environment variable SPARSEEINSUM_DEVICE
            sets it, too.

    Raises:
        ArgumentError: There is no such device.
        PackageError: cupy is not installed.
        KernelsError: There is no GPU, or cupy cannot use it.
    """
    if device not in DEVICES:
        raise ArgumentError(f"there is no device {device!r}; choose one of {', '.join(DEVICES)}")
    use_gpu(None if device == _PROCESSOR else open_gpu())


def get_device() -> str:
    """The device that computes large matrix products: `cpu`, or `cuda` and the name of the GPU."""
    gpu = gpu_in_use()
    return _PROCESSOR if gpu is None else gpu.name


def set_device_of_environment() -> None:
    """Choose the device that the environment variable names, once for each of its values.

    Raises:
        ArgumentError, PackageError, KernelsError: As for `set_device`.
    """
    device = os.environ.get(VARIABLE, "")
    if device and device not in _APPLIED:
        try:
            set_device(device)
        except ArgumentError as error:
            raise ArgumentError(f"the environment variable {VARIABLE}: {error}") from error
        _APPLIED.append(device)
