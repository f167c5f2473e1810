"""Machine code of kernels: loaded into a process as other packages leave it."""

import subprocess
import sys

import pytest

import sparseeinsum as se
from sparseeinsum.kernels import native
from sparseeinsum.kernels.processors import NATIVE, PROCESSORS

_PROGRAM = """
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

import sparseeinsum as se
with se.connect() as db:
    db.tensor("A", [[1.0, 2.0], [3.0, 4.0]])
    print(db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reserves address space as Linux does")
def test_kernels_load_where_address_space_has_gaps(db: se.Database) -> None:
    """Small gaps 4 GiB apart, as large libraries leave them: code and constants of a kernel must not be torn apart."""
    assert db.connection is not None  # kernels are compiled
    finished = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert finished.stdout == "[3. 7.]\n"


_LOADED_ALONE = """
import sys
from sparseeinsum.kernels import compiler, native
group, processor = sys.argv[1:]
kept = dict(zip(native.GROUPS_OF_HOSTS["duckdb"], native.kernel_objects("duckdb")))
code = kept[group] if processor == "native" else compiler.compile_group(group, processor)
native.NativeCode((code,), dict.fromkeys(compiler._SUPPLIED, 1))  # never called
"""
_ALONE = [
    *((group, NATIVE) for group in native.GROUPS_OF_HOSTS["duckdb"]),
    *(("blas", processor) for processor in PROCESSORS if processor != NATIVE),  # compiled at once
]


@pytest.mark.parametrize(("group", "processor"), _ALONE)
def test_every_object_loads_alone(db: se.Database, group: str, processor: str) -> None:
    """LLVM's loader ended the process where an object had calls, but no writable section."""
    assert db.connection is not None  # kernels are compiled
    command = [sys.executable, "-c", _LOADED_ALONE, group, processor]
    assert subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout == ""
