"""Kernels: whether indices are checked in those that are compiled, for tests: one out of bounds ends the process."""

import os

VARIABLE = "SPARSEEINSUM_CHECKED_KERNELS"


def are_checked() -> bool:
    """Whether the environment asks for it."""
    return os.environ.get(VARIABLE) == "1"
