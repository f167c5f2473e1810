"""Kernels: makes the rows of `tensor_functions()`, which lists the array functions, as data of the library for DuckDB.

Compiled code returns them: see compiled/duckdb/function_list.py.
"""

from collections.abc import Iterator

from sparseeinsum.kernels.array_functions import ArrayFunction, array_functions
from sparseeinsum.kernels.duckdb import registry_layout as r
from sparseeinsum.kernels.static_data import StaticText, StaticWords

FUNCTION_LIST = "function_list"  # the symbol of its words
FUNCTION_LIST_FUNCTION = "tensor_functions"

_COLUMNS = {
    "name": r.VARCHAR,
    "arguments": r.VARCHAR,
    "returns": r.VARCHAR,
    "dtypes": r.VARCHAR,
    "is_aggregate": r.BOOLEAN,
    "description": r.VARCHAR,
    "example": r.VARCHAR,
}


def function_list() -> Iterator[StaticText | StaticWords]:
    """Yield the texts, and the words that registry_layout.py describes."""
    rows = [_row(function) for function in array_functions()]
    yield StaticText("no_memory", f"{FUNCTION_LIST_FUNCTION}: there is no memory left")
    texts = {value for row in rows for value in row if isinstance(value, str)} | set(_COLUMNS)
    symbols = {text: f"listed_{index}" for index, text in enumerate(sorted(texts))}
    yield from (StaticText(symbol, text) for text, symbol in symbols.items())
    words: list[int | str] = ["table_data_destroy", "no_memory", len(_COLUMNS), len(rows)]
    for name, kind in _COLUMNS.items():
        words += [symbols[name], kind]
    for row in rows:
        words += [symbols[value] if isinstance(value, str) else int(value) for value in row]
    yield StaticWords(FUNCTION_LIST, tuple(words))


def _row(function: ArrayFunction) -> tuple[str | bool, ...]:
    """Return a value for each column."""
    return (
        function.name,
        ", ".join(f"{argument.name} {argument.type.lower()}" for argument in function.arguments),
        function.returns.lower(),
        ", ".join(function.dtypes),
        function.is_aggregate,
        function.description,
        function.example,
    )
