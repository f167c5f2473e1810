"""Programs that a PostgreSQL server plans and runs, by the functions of sparseeinsum_python."""

from typing import Any

import psycopg

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"


def einsum_into(shell: psycopg.Connection, program: str, **options: object) -> list[tuple[Any, ...]]:
    """Run a program; return the description of every result, one a row."""
    named = "".join(f", {name} => %({name})s" for name in options)
    query = f"SELECT * FROM sparseeinsum.einsum_into(%(program)s{named})"
    return shell.execute(query, {"program": program, **options}).fetchall()
