"""Kernels: the major versions of PostgreSQL that libraries are for, and what their functions are called there."""

import re

MAJORS = (15, 16, 17, 18)


def link_symbol(symbol: str, version: str) -> str:
    """Name of a function in the library of a version of the extension, of which a script of another one finds none.

    >>> link_symbol("version", "0.1.0")
    'sparseeinsum_0_1_0_version'
    """
    return f"sparseeinsum_{re.sub(r'[^0-9A-Za-z]', '_', version)}_{symbol}"
