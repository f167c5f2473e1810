"""Machine code of kernels: loaded into a process as other packages leave it."""

import subprocess
import sys

import pytest

import sparseeinsum as se

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
