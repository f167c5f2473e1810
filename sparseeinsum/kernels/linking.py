"""Kernels: object files in, a shared library out that a database server loads; the linker is the system's.

Neither a compiler nor headers are needed. What libraries leave open, C's functions, a server brings along.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import llvmlite.binding as llvm

from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.native import kernel_objects, target_machine
from sparseeinsum.kernels.processors import NATIVE, is_x86

# The table of users' functions of a library: nothing can compile any where Python is not the host.
_USERS_WORDS = 1 + d.MAX_USERS_FUNCTIONS * d.USERS_FUNCTION_WORDS
NO_USERS_FUNCTIONS = f"@{d.USERS_FUNCTIONS} = hidden constant [{_USERS_WORDS} x i64] zeroinitializer"

_LINKERS = ("ld", "ld.lld", "ld.bfd", "ld.gold")
_OPTIONS = ("-shared", "-z", "now", "-z", "relro", "-z", "noexecstack", "--gc-sections")


def link_library(host: str, processor: str, host_code: Iterable[str], exported: Sequence[str]) -> bytes:
    """A shared library of the kernels for a host of `native.GROUPS_OF_HOSTS`.

    Args:
        host: Whose callbacks the library has.
        processor: One of `processors.PROCESSORS`, which the kernels are for.
        host_code: LLVM IR of what else is in the library; it runs on any processor of the kind.
        exported: Names that can be called from outside.

    Raises:
        ExtensionError: The processor is not supported, there is no linker, or it failed.
    """
    if processor != NATIVE and not is_x86():
        raise ExtensionError(f"the processor {processor} is none of this machine's kind; build for {NATIVE}")
    module = llvm.parse_assembly("\n".join(host_code))
    module.verify()
    least = target_machine("x86-64" if is_x86() else NATIVE)
    objects = (*kernel_objects(host, processor), least.emit_object(module))
    with tempfile.TemporaryDirectory() as folder:
        return _link(objects, exported, Path(folder))


def _link(objects: Iterable[bytes], exported: Sequence[str], folder: Path) -> bytes:
    linker = next((found for name in _LINKERS if (found := shutil.which(name))), None)
    if linker is None:
        raise ExtensionError(f"no linker found (one of {', '.join(_LINKERS)}); apt-get install binutils brings ld")
    files = []
    for index, code in enumerate(objects):
        files.append(folder / f"{index}.o")
        files[-1].write_bytes(code)
    script, library = folder / "exported.map", folder / "library.so"
    script.write_text(f"{{ global: {' '.join(f'{name};' for name in exported)} local: *; }};")
    command = [linker, *_OPTIONS, f"--version-script={script}", "-o", str(library), *map(str, files)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise ExtensionError(f"{linker} failed: {finished.stderr.strip()[-2000:]}")
    return library.read_bytes()


def write_whole(path: Path, content: bytes, permissions: int) -> None:
    """Write a file whole or not at all: servers that run may have the old one in memory."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).chmod(permissions)
    Path(file.name).replace(path)
