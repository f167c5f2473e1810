"""Kernels: machine code in this process: read from the cache, or compiled once and kept; addresses by name."""

import fcntl
import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
from rich.console import Console

from sparseeinsum import assets
from sparseeinsum.kernels.processors import NATIVE, target
from sparseeinsum.settings import cache_folder

PARTS = ("compute", "batch", "initialise", "combine", "part_size")
_KERNELS = ("measures", "f64", "f32", "i64", "c128", "c64")
GROUPS_OF_HOSTS = {  # one object file each
    "duckdb": (*_KERNELS, "blas", "duckdb"),
    "duckdb_library": (*_KERNELS, "matrix_products", "duckdb"),
    "postgresql": (*_KERNELS, "matrix_products", "postgresql"),
}
_ROOM = "sparseeinsum_room"
_WORD_BYTES, _PAGE_BYTES = 8, 4096  # pages are as large on all processors, or larger
_DIGEST_BYTES = hashlib.sha256().digest_size  # at the start of each file of the cache


def measure_symbol(measure: str) -> str:
    """Name of a function of measures.py in the object files."""
    return f"sparseeinsum_measure_{measure}"


def kernel_symbol(kernel: str, part: str, suffix: str) -> str:
    """Name of one part of a kernel for one dtype in the object files."""
    return f"sparseeinsum_{kernel}_{part}_{suffix}"


@cache
def target_machine(processor: str = NATIVE) -> llvm.TargetMachine:
    """One of `processors.PROCESSORS`, position-independent code."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    name, features = target(processor)
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=name,
        features=features,
        opt=3,
        reloc="pic",
        codemodel="small",
    )


def export(module: llvm.ModuleRef, inner: str, name: str, parameters: int, returned: str = "value") -> None:
    """Add the C function `name` of int64 that returns int64 and calls a function that numba compiled.

    It returns the function's value, or, where `returned` is "status", 0 unless the function raised an exception.
    """
    words = "".join(", i64" for _ in range(parameters))
    values = "".join(f", i64 %a{i}" for i in range(parameters))
    taken = ", ".join(f"i64 %a{i}" for i in range(parameters))
    module.link_in(
        llvm.parse_assembly(
            f"""
            declare i32 @"{inner}"(ptr, ptr{words})
            define i64 @{name}({taken}) {{
              %result = alloca i64
              %exception = alloca ptr
              store i64 0, ptr %result
              %short = call i32 @"{inner}"(ptr %result, ptr %exception{values})
              %status = sext i32 %short to i64
              %value = load i64, ptr %result
              ret i64 %{returned}
            }}"""
        )
    )


def optimise(module: llvm.ModuleRef, exported: Collection[str], processor: str = NATIVE) -> None:
    """Make a module's machine code fast and small; only what is exported can be called from outside."""
    for defined in module.functions:
        if not defined.is_declaration and defined.name not in exported:
            defined.linkage = "internal"
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(target_machine(processor), options)
    builder.getModulePassManager().run(module, builder)


def emit_object(module: llvm.ModuleRef, processor: str = NATIVE) -> bytes:
    """The object file of a module, which LLVM's loader can load in whatever process.

    For each external function that code calls, the loader wants a word of writable memory, which it does not count when
    it reserves memory (`RuntimeDyldImpl::computeTotalAllocSize`, LLVM 20); without room left over it ends the process.
    A writable byte that lies at the start of a page makes it reserve a page more.
    """
    externals = sum(function.is_declaration for function in module.functions)
    assert 2 * _WORD_BYTES * externals < _PAGE_BYTES, "calls of more functions than the loader finds room for"
    module.link_in(llvm.parse_assembly(f"@{_ROOM} = global i8 1, align {_PAGE_BYTES}"))
    module.get_global_variable(_ROOM).linkage = "internal"  # what is internal before is not linked in
    return bytes(target_machine(processor).emit_object(module))


class NativeCode:
    """Machine code of all kernels and callbacks, loaded; keeps its memory alive."""

    def __init__(self, objects: Iterable[bytes], externals: Mapping[str, int]) -> None:
        for name, address in externals.items():
            llvm.add_symbol(name, address)
        # Its own memory manager keeps the parts of an object together. Without it they may lie further apart than their
        # code can jump, where address space has gaps, as after `import torch`; and LLVM then ends the process.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine(), use_lmm=True)
        for code in objects:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address_of(self, symbol: str) -> int:
        """Address of a function; 0 where the object has none of that name."""
        return int(self._engine.get_function_address(symbol))


def kernel_objects(host: str, processor: str = NATIVE) -> tuple[bytes, ...]:
    """The object files that a host needs: from the cache, or compiled now and kept there for the next process."""
    groups = GROUPS_OF_HOSTS[host]
    digests = _fingerprints(groups, processor)
    paths = {group: cache_folder() / f"kernels-{digests[group]}-{group}.o" for group in groups}
    code = _kept(paths)
    if len(code) < len(groups):
        with _notice(processor), _alone_in(cache_folder()):
            code |= _completed(paths, processor)
    return tuple(code[group] for group in groups)


def _kept(paths: Mapping[str, Path]) -> dict[str, bytes]:
    """The groups that are in the cache."""
    return {group: kept for group, path in paths.items() if (kept := _read(path)) is not None}


def _completed(paths: Mapping[str, Path], processor: str) -> dict[str, bytes]:
    """All groups; those that are in the cache by now are not compiled."""
    code = _kept(paths)
    missing = [group for group in paths if group not in code]
    if missing:
        with tempfile.TemporaryDirectory() as temporary:
            compiled = _compile_groups(missing, Path(temporary), processor)
        for group in missing:
            _keep(paths[group], compiled[group])
        code |= compiled
    return code


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One process at a time compiles for a cache, and others find what it did; where locks cannot be had, each does."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):  # of a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _notice(processor: str) -> Iterator[None]:
    console = Console(stderr=True)
    machine = "this machine" if processor == NATIVE else processor
    message = f"sparseeinsum: compiling kernels for {machine} (once)"
    if console.is_terminal:
        with console.status(message):
            yield
    else:
        console.print(message)
        yield


def _compile_groups(groups: Iterable[str], folder: Path, processor: str = NATIVE) -> dict[str, bytes]:
    """Compile each group in a process of its own, all at once: numba compiles one function at a time."""
    command = [sys.executable, "-m", "sparseeinsum.kernels.compiler"]
    files = {group: folder / f"{group}.o" for group in groups}
    processes = [
        subprocess.Popen([*command, group, str(file), processor], stderr=subprocess.PIPE, text=True)
        for group, file in files.items()
    ]
    for process in processes:
        _, errors = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"compiling the kernels failed: {errors.strip()[-2000:] or process.returncode}")
    return {group: file.read_bytes() for group, file in files.items()}


def _read(path: Path) -> bytes | None:
    """What `_keep` wrote; None where it is not there or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def _keep(path: Path, code: bytes) -> None:
    """Write a cache file whole or not at all; a folder that cannot be written only costs time later."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(file.name).replace(path)
    except OSError:
        return


def _fingerprints(groups: Iterable[str], processor: str = NATIVE) -> dict[str, str]:
    """Changes with the sources, the functions asked for, the compiler and the processor.

    Sources in the folders of a host count for the group that is named so alone.
    """
    udfs, own = assets.path("udfs"), Path(__file__).parent
    shared = (*sorted(own.glob("*.py")), *sorted((own / "compiled").glob("*.py")))
    versions = [importlib.metadata.version(name) for name in ("numba", "llvmlite")]
    common = hashlib.sha256("\n".join((*versions, platform.machine(), *target(processor))).encode())
    for file in (*sorted(udfs.glob("*.toml")), *sorted(udfs.glob("*.py")), *shared):
        common.update(file.read_bytes())
    found = {}
    for group in groups:
        digest = common.copy()
        for file in (*sorted(own.glob(f"{group}/*.py")), *sorted(own.glob(f"compiled/{group}/*.py"))):
            digest.update(file.read_bytes())
        found[group] = digest.hexdigest()[:24]
    return found
