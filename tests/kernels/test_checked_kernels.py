"""Checked kernels end the process at an index that is out of bounds."""

import os
import subprocess
import sys

import pytest

from sparseeinsum.kernels.building.source_digests import digest_of_bitcode
from sparseeinsum.kernels.index_checks import VARIABLE
from sparseeinsum.kernels.libraries import digest_of_sources

COUNTED = """
import llvmlite.binding as llvm
from sparseeinsum.kernels.building.frontend import compile_group

print(str(llvm.parse_bitcode(compile_group("matrix_products"))).count("call void @llvm.trap"))
"""


def traps(is_checked: bool) -> int:
    """The number of traps in the kernels of matrix products."""
    environment = os.environ | {VARIABLE: str(int(is_checked))}
    command = [sys.executable, "-c", COUNTED]
    return int(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def test_indices_are_checked_if_asked() -> None:
    assert traps(is_checked=True) > 10
    assert traps(is_checked=False) == 0


def test_checked_kernels_are_cached_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    digest_of_sources.cache_clear()
    plain = (digest_of_bitcode("f64"), digest_of_sources())
    monkeypatch.setenv(VARIABLE, "1")
    digest_of_sources.cache_clear()
    checked = (digest_of_bitcode("f64"), digest_of_sources())
    digest_of_sources.cache_clear()
    assert plain[0] != checked[0]
    assert plain[1] != checked[1]
