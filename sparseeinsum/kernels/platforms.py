"""Kernels: lists platforms and their processors; says which of them this process runs on and asks for."""

import os
import platform
import sys
from dataclasses import dataclass

from sparseeinsum.errors import KernelsError

NATIVE = "native"  # exactly the processor of the machine that compiles
VARIABLE = "SPARSEEINSUM_PROCESSOR"  # the environment variable that chooses a processor


@dataclass(frozen=True, slots=True)
class Platform:
    """An operating system on a processor architecture.

    Attributes:
        name: The name of the platform in DuckDB.
        system: The name of the operating system in Python, `sys.platform`.
        machines: The names of the architecture in `platform.machine()`.
        levels: The processor levels that one library has code for, the lowest first.
        has_postgresql: Whether there are libraries for PostgreSQL.
    """

    name: str
    system: str
    machines: tuple[str, ...]
    levels: tuple[str, ...]
    has_postgresql: bool = True

    @property
    def is_x86(self) -> bool:
        """Whether the processors have the instruction CPUID, which tells their features."""
        return "x86_64" in self.machines

    @property
    def processors(self) -> tuple[str, ...]:
        """The names of the processors that code can be compiled for."""
        return (*self.levels, NATIVE)


_X86_64, _ARM64 = ("x86_64", "AMD64"), ("aarch64", "arm64")
_LEVELS_OF_X86 = ("x86-64-v2", "x86-64-v3", "x86-64-v4")  # https://gitlab.com/x86-psABIs/x86-64-ABI
_LEVELS_OF_ARM = ("generic",)

PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform("linux_amd64", "linux", _X86_64, _LEVELS_OF_X86),
        Platform("linux_arm64", "linux", _ARM64, _LEVELS_OF_ARM),
        Platform("osx_arm64", "darwin", _ARM64, _LEVELS_OF_ARM),
        Platform("osx_amd64", "darwin", _X86_64, _LEVELS_OF_X86[:-1]),  # hides AVX-512 registers from CPUID
        Platform("windows_amd64", "win32", _X86_64, _LEVELS_OF_X86, has_postgresql=False),
    )
}


def this_platform() -> Platform:
    """Return the platform of this process.

    Raises:
        KernelsError: There are no kernels for this platform.
    """
    machine = platform.machine()
    for candidate in PLATFORMS.values():
        if candidate.system == sys.platform and machine in candidate.machines:
            return candidate
    raise KernelsError(
        f"there are no kernels for {sys.platform} on {machine}; platforms are {', '.join(PLATFORMS)}, in DuckDB's words"
    )


def processor_asked_for() -> str | None:
    """Return the processor of this platform that the environment variable names; None if it is not set.

    Raises:
        KernelsError: The variable names a processor that this platform does not have.
    """
    processor = os.environ.get(VARIABLE) or None
    processors = this_platform().processors
    if processor is not None and processor not in processors:
        raise KernelsError(f"{VARIABLE} is {processor!r}, which is none of {', '.join(processors)}")
    return processor
