"""Kernels: lists the supported major versions of PostgreSQL, and names the symbols of libraries."""

import re

MAJORS = (15, 16, 17, 18)

# The symbol of the function behind einsum, which is in the script of the other extension: the same in every version, so
# that this script can be created before an update.
WITH_COLUMNS = "sparseeinsum_with_columns"
TYPE_SYMBOLS = ("tensor_in", "tensor_recv", "tensor_cast")  # of the functions of the type tensor
KEPT_SYMBOLS = ("kept_keep", "kept_read", "kept_size", "kept_release")  # of those of arrays that a session keeps


def link_symbol(symbol: str, version: str) -> str:
    """Return the symbol of a function in a version of the library; scripts of other versions do not find it.

    >>> link_symbol("version", "0.1.0")
    'sparseeinsum_0_1_0_version'
    """
    return f"sparseeinsum_{re.sub(r'[^0-9A-Za-z]', '_', version)}_{symbol}"
