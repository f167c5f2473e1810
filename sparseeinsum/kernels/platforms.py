"""Kernels: the platforms that libraries are for and the processors of each; what this process runs on and asks for."""

import os
import platform
import sys
from dataclasses import dataclass

from sparseeinsum.errors import KernelsError

NATIVE = "native"  # the very processor of the machine that compiles
VARIABLE = "SPARSEEINSUM_PROCESSOR"  # of the environment


@dataclass(frozen=True, slots=True)
class Platform:
    """An operating system on a kind of processor.

    Attributes:
        name: What DuckDB calls it.
        system: What Python calls the operating system.
        machines: What operating systems call the kind of processor.
        levels: Processors that one library can have code for, the least first.
        has_postgresql: Whether there are libraries for PostgreSQL.
    """

    name: str
    system: str
    machines: tuple[str, ...]
    levels: tuple[str, ...]
    has_postgresql: bool = True

    @property
    def is_x86(self) -> bool:
        """Whether its processors are those that CPUID tells the features of."""
        return "x86_64" in self.machines

    @property
    def processors(self) -> tuple[str, ...]:
        """Names of processors that code can be compiled for."""
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
        Platform("osx_amd64", "darwin", _X86_64, _LEVELS_OF_X86[:-1]),  # hides the registers of the last from CPUID
        Platform("windows_amd64", "win32", _X86_64, _LEVELS_OF_X86, has_postgresql=False),
    )
}


def this_platform() -> Platform:
    """The platform of this process.

    Raises:
        KernelsError: There are no kernels for it.
    """
    machine = platform.machine()
    for candidate in PLATFORMS.values():
        if candidate.system == sys.platform and machine in candidate.machines:
            return candidate
    raise KernelsError(
        f"there are no kernels for {sys.platform} on {machine}; platforms are {', '.join(PLATFORMS)}, in DuckDB's words"
    )


def processor_asked_for() -> str | None:
    """The processor that the environment asks for, one of those of this platform; None where it asks for none.

    Raises:
        KernelsError: It asks for one that this platform has not.
    """
    processor = os.environ.get(VARIABLE) or None
    processors = this_platform().processors
    if processor is not None and processor not in processors:
        raise KernelsError(f"{VARIABLE} is {processor!r}, which is none of {', '.join(processors)}")
    return processor
