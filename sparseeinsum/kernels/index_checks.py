"""Kernels: says whether compiled kernels check their indices, for tests; an index out of bounds ends the process."""

import os

VARIABLE = "SPARSEEINSUM_CHECKED_KERNELS"


def are_checked() -> bool:
    """Whether the environment variable asks for kernels that check their indices."""
    return os.environ.get(VARIABLE) == "1"
