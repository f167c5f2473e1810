"""Kernels: links object files into a shared library, by the system's linker or that of the package `ziglang`.

This needs no compiler, headers or libraries of the platform: the external functions of C are listed here.
"""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from sparseeinsum.errors import KernelsError
from sparseeinsum.kernels.building.code_generation import object_of_text
from sparseeinsum.kernels.building.externals import C_MATHEMATICS
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.platforms import Platform, this_platform

_LINKERS_OF_LINUX = ("ld", "ld.lld", "ld.bfd", "ld.gold")
_ELF = ("-shared", "--eh-frame-hdr", "-z", "now", "-z", "relro", "-z", "noexecstack", "--gc-sections")

# The libraries that define functions of C. On Linux, any version of the system's libraries will do.
_MEMORY_AND_TEXT = ("calloc", "free", "getenv", "malloc", "memcmp", "memcpy", "memmove", "memset", "strcmp", "strtod")
_OF_LINUX = {
    "libm.so.6": (*C_MATHEMATICS, "sincos", "sincosf"),  # a compiler merges a sine and a cosine into them
    "libc.so.6": (
        *(*_MEMORY_AND_TEXT, "getentropy", "madvise", "sigfillset", "sysconf"),
        *("pthread_create", "pthread_join", "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_sigmask"),
    ),
}
_OF_WINDOWS = {
    "ucrtbase.dll": (*C_MATHEMATICS, *_MEMORY_AND_TEXT),
    "kernel32.dll": (
        *("AcquireSRWLockExclusive", "GetPhysicallyInstalledSystemMemory", "ReleaseSRWLockExclusive"),
        *("CloseHandle", "CreateThread", "WaitForSingleObject"),
    ),
    "advapi32.dll": ("SystemFunction036",),
}


def link(
    objects: Sequence[Path], library: Path, platform: Platform, exported: Collection[str], allow_undefined: bool
) -> None:
    """Link object files into a shared library.

    Args:
        objects: The paths of the object files.
        library: The path of the library to write; temporary files are written to its folder.
        platform: The platform of the object files and the library.
        exported: The names of the functions that the library exports.
        allow_undefined: Whether the host that loads the library defines other functions that it calls.

    Raises:
        KernelsError: There is no linker for the platform, or it failed; its message says why.
    """
    require_linker(platform)
    _LINKS[platform.system](objects, library, platform, exported, allow_undefined)


def can_link(platform: Platform) -> bool:
    """Whether there is a linker that can link for a platform."""
    return _has_zig() or (platform == this_platform() and _linker_of_linux() is not None)


def require_linker(platform: Platform) -> None:
    """Raise KernelsError if there is no linker that can link for a platform."""
    if not can_link(platform):
        raise KernelsError(
            "there is no linker; pip install ziglang installs one for all platforms, and on Linux ld will do"
        )


def _link_elf(
    objects: Sequence[Path], library: Path, platform: Platform, exported: Collection[str], allow_undefined: bool
) -> None:
    script = library.with_suffix(".map")
    script.write_text(f"{{ global: {' '.join(f'{name};' for name in exported)} local: *; }};")
    system_linker = _linker_of_linux() if platform == this_platform() and not _has_zig() else None
    command = _zig("ld.lld") if system_linker is None else [system_linker]
    stubs = [_stub(command, library.parent, name, functions, Target(platform)) for name, functions in _OF_LINUX.items()]
    options = [*_ELF, f"--version-script={script}", "--no-as-needed", *(() if allow_undefined else ("-z", "defs"))]
    _run([*command, *options, "-o", str(library), *map(str, objects), *map(str, stubs)])


def _stub(command: Sequence[str], folder: Path, name: str, functions: Collection[str], target: Target) -> Path:
    """Link an empty library under the name of a system library, so that the linker records the dependency."""
    source, stub = folder / f"{name}.o", folder / name
    source.write_bytes(
        object_of_text("".join(f"define void @{function}() {{ ret void }}" for function in functions), target)
    )
    _run([*command, "-shared", f"-soname={name}", "-o", str(stub), str(source)])
    return stub


def _link_macho(
    objects: Sequence[Path], library: Path, platform: Platform, exported: Collection[str], allow_undefined: bool
) -> None:
    """Link for macOS, where `exported` is not needed: a library exports what its object files do not hide."""
    machine = "aarch64" if "arm64" in platform.machines else "x86_64"
    options = ["-shared", "-target", f"{machine}-macos.11.0", "-fno-sanitize=all", "-O2"]
    options.append(f"-Wl,-install_name,@rpath/{library.name}")
    if allow_undefined:
        options.append("-Wl,-undefined,dynamic_lookup")
    _run([*_zig("cc"), *options, "-o", str(library), *map(str, objects)])


def _link_coff(
    objects: Sequence[Path], library: Path, platform: Platform, exported: Collection[str], allow_undefined: bool
) -> None:
    if allow_undefined:
        raise KernelsError("libraries for PostgreSQL on Windows are not supported yet")
    imported = []
    for name, functions in _OF_WINDOWS.items():
        definition, stub = library.with_name(f"{name}.def"), library.with_name(f"{name}.lib")
        definition.write_text("\n".join((f"LIBRARY {name}", "EXPORTS", *functions)))
        _run([*_zig("dlltool"), "-m", "i386:x86-64", "-d", str(definition), "-l", str(stub)])
        imported.append(str(stub))
    options = ["/dll", "/noentry", "/Brepro", f"/out:{library}", *(f"/export:{name}" for name in exported)]
    _run([*_zig("lld-link"), *options, *map(str, objects), *imported])


_LINKS: Mapping[str, Callable[[Sequence[Path], Path, Platform, Collection[str], bool], None]] = {
    "linux": _link_elf,
    "darwin": _link_macho,
    "win32": _link_coff,
}


def _linker_of_linux() -> str | None:
    if sys.platform != "linux":
        return None
    return next((path for name in _LINKERS_OF_LINUX if (path := shutil.which(name))), None)


def _has_zig() -> bool:
    return importlib.util.find_spec("ziglang") is not None


def _zig(command: str) -> list[str]:
    return [sys.executable, "-m", "ziglang", command]


def _run(command: Sequence[str]) -> None:
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise KernelsError(f"{' '.join(command[:4])} ... failed: {finished.stderr.strip()[-2000:]}")
