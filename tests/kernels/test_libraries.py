"""Libraries of compiled kernels load in any process, on every processor level, with or without a linker."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from duckdb_shell import Shell

import sparseeinsum as se
from sparseeinsum.environment.settings import cache_folder
from sparseeinsum.kernels.building.make import cache_library
from sparseeinsum.kernels.building.processors import best_level
from sparseeinsum.kernels.groups import GROUPS
from sparseeinsum.kernels.platforms import NATIVE, VARIABLE, this_platform

PLATFORM = this_platform()
LEVELS = PLATFORM.levels[: PLATFORM.levels.index(best_level(PLATFORM)) + 1]  # that this machine has

ROW_SUMS = """
import sparseeinsum as se
from sparseeinsum.kernels.duckdb.library import require_library
with se.connect() as db:
    db.tensor("A", [[1.0, 2.0], [3.0, 4.0]])
    print(require_library().processor, db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy())
"""
WITHOUT_A_LINKER = """
from sparseeinsum.kernels.building import make
from sparseeinsum.kernels.duckdb import library
make.can_link = lambda platform: False
library.libraries_for_duckdb = lambda: iter(())
"""
# Small gaps 4 GiB apart, as large libraries leave them in address space.
GAPS = """
import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def reserve(size):
    no_reserve = 0x4000
    return libc.mmap(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve, -1, 0)

gaps = []
for size in [1 << power for power in range(12, 19)] * 3:
    gaps.append((reserve(size), size))
    reserve(1 << 32)
for gap in gaps:
    libc.munmap(*gap)
"""


def run(program: str, processor: str = "", **more: str) -> str:
    """Output of a program that runs in a process of its own for a processor level."""
    environment = os.environ | {VARIABLE: processor} | more
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.parametrize("processor", [*LEVELS, NATIVE])
def test_a_library_for_each_processor(processor: str) -> None:
    cache_library(processor)
    assert run(ROW_SUMS, processor) == f"{processor} [3. 7.]\n"


def test_the_best_level_is_the_default(tmp_path: Path) -> None:
    cache_library(None)
    assert run(ROW_SUMS).split()[0] in (best_level(PLATFORM), NATIVE)


@pytest.mark.skipif(sys.platform != "linux", reason="reserves address space as Linux does")
def test_without_a_linker_object_files_are_loaded(tmp_path: Path) -> None:
    """LLVM loads them, and must keep code and constants of a kernel together if address space has gaps."""
    cache_library(None)
    assert run(GAPS + WITHOUT_A_LINKER + ROW_SUMS) == f"{best_level(PLATFORM)} [3. 7.]\n"


LOADED_ALONE = """
import os, sys
from sparseeinsum.kernels.building.assembling import object_for_duckdb
from sparseeinsum.kernels.building.compiling import library_parts
from sparseeinsum.kernels.building.externals import SUPPLIED
from sparseeinsum.kernels.building.loading import LoadedObjects
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.platforms import this_platform
from sparseeinsum.kernels.symbols import processor_symbol
from sparseeinsum.environment.settings import cache_folder

processor = sys.argv[1]
pieces = library_parts("duckdb", [Target(this_platform(), processor)], cache_folder())
known = [*SUPPLIED, *pieces.exported, "sparseeinsum_draw_secret"]
nowhere = dict.fromkeys([*known, *(processor_symbol(name, processor) for name in known)], 1)  # never called
for code in (*pieces.objects, object_for_duckdb(pieces)):
    child = os.fork()
    if child == 0:
        LoadedObjects([code], nowhere)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("processor", [*LEVELS, NATIVE])
def test_every_object_file_loads_alone(processor: str) -> None:
    """LLVM's loader ended the process if an object had calls but no writable section."""
    cache_library(processor)
    command = [sys.executable, "-c", LOADED_ALONE, processor]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert finished.stdout.split() == ["0"] * len(GROUPS), finished.stderr


@pytest.mark.parametrize("processor", [*LEVELS, NATIVE])
def test_kernels_of_each_processor_compute_the_same(processor: str) -> None:
    cache_library(processor)
    tests = Path(__file__).with_name("test_matrix_products.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    environment = os.environ | {VARIABLE: processor}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stdout


@pytest.mark.parametrize("processor", LEVELS)
def test_the_demo_on_each_processor(processor: str) -> None:
    cache_library(processor)
    program = "from sparseeinsum.cli import main; main(['demo', '--repeat', '1'])"
    assert "scipy, the same steps" in run(program, processor)


def test_unknown_processors_are_refused() -> None:
    program = "import sparseeinsum as se\ntry:\n    se.connect()\nexcept se.KernelsError as error:\n    print(error)"
    assert run(program, "i386") == f"{VARIABLE} is 'i386', which is none of {', '.join(PLATFORM.processors)}\n"


# Functions of a plain DuckDB connection, and the error of `se.connect()`.
PLAIN = """
import duckdb, sparseeinsum as se
connection = duckdb.connect()
print(connection.execute("SELECT count(*) FROM duckdb_functions() WHERE function_name LIKE 'tensor%'").fetchone()[0])
try:
    se.connect()
except se.KernelsError as error:
    print(error)
"""
FAILURES: Mapping[str, tuple[str, str]] = {
    "compiling fails": (
        "from sparseeinsum.kernels.building import compiling; compiling._WORKER = 'no_such_module'",
        "compiling .* failed: .*no_such_module",
    ),
    "numba is missing": ("import sys; sys.modules['llvmlite'] = None", r"pip install 'sparseeinsum\[compile\]'"),
    "the platform is unknown": ("import platform; platform.machine = lambda: 'pdp11'", "no kernels for linux on pdp11"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_duckdb_works_without_kernels(failure: str, tmp_path: Path) -> None:
    """`import` and `duckdb.connect()` work as without the package; `se.connect()` explains what is wrong."""
    cause, message = FAILURES[failure]
    printed = run(f"{cause}\n{PLAIN}", XDG_CACHE_HOME=str(tmp_path))
    functions, _, said = printed.partition("\n")
    assert functions == "0"
    assert re.search(message, said, re.DOTALL), said


def test_a_plain_connection_compiles_nothing(tmp_path: Path) -> None:
    program = "import duckdb, sparseeinsum; duckdb.connect().execute('SELECT 1')"
    assert run(program, XDG_CACHE_HOME=str(tmp_path)) == ""
    assert list(tmp_path.rglob("*")) == []


def test_a_library_that_the_system_refuses_is_compiled_again(tmp_path: Path) -> None:
    """The library is truncated or damaged."""
    library = cache_library(None)
    shutil.copytree(cache_folder(), tmp_path / "sparseeinsum")
    victim, whole = tmp_path / "sparseeinsum" / library.name, library.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", bytes(len(whole)), b"x" + whole[1:]):
        victim.write_bytes(damaged)
        assert "[3. 7.]" in run(ROW_SUMS, best_level(PLATFORM), XDG_CACHE_HOME=str(tmp_path))
        assert victim.read_bytes() == whole


# DuckDB throws an exception through a kernel that asks for a list without enough memory.
TOO_LARGE = "SELECT i % 3, tensor_sum(tensor_fill(2000, i::DOUBLE)) FROM range(3000) AS t(i) GROUP BY ALL"
THROWS = f"""
import duckdb, sparseeinsum as se
connection = se.connect().connection
connection.execute("SET memory_limit = '8MB'")
for _ in range(20):
    try:
        connection.execute("{TOO_LARGE}")
    except duckdb.OutOfMemoryException as error:
        print("caught")
"""


@pytest.mark.parametrize("preparation", ["", WITHOUT_A_LINKER])
def test_exceptions_of_duckdb_pass_through_kernels(preparation: str) -> None:
    """The library has unwind tables; without them, an exception would end the process."""
    cache_library(None)
    assert run(preparation + THROWS) == "caught\n" * 20


def test_exceptions_of_duckdb_pass_through_the_extension_file(shell: Shell) -> None:
    finished = shell.run("-csv", "-noheader", script=f"SET memory_limit = '8MB';\n{TOO_LARGE};\nSELECT 'goes on';\n")
    assert finished.stdout == "goes on\n"
    assert "Out of Memory" in finished.stderr


FORKS = """
import os, sparseeinsum as se
from sparseeinsum.kernels.duckdb.library import has_library
if {opened}:
    se.connect().close()
child = os.fork()
if child == 0:
    with se.connect() as db:
        db.tensor("A", [[1.0, 2.0], [3.0, 4.0]])
        os._exit(int(db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy().sum()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_forks(opened: bool, db: se.Database) -> None:
    assert db.connection is not None  # kernels are compiled
    assert run(FORKS.format(opened=opened)) == "10\n"
