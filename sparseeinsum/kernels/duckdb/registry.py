"""Kernels: makes the registry: the array functions as data that a library registers with DuckDB.

Compiled code reads it in every process that has the functions: see compiled/duckdb/registration.py.
"""

import itertools
from collections.abc import Iterator

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.array_functions import HANDLES, ArrayFunction, FunctionKind, ValueType, array_functions
from sparseeinsum.kernels.duckdb import registry_layout as r
from sparseeinsum.kernels.duckdb.function_list import FUNCTION_LIST, FUNCTION_LIST_FUNCTION, function_list
from sparseeinsum.kernels.kernel_descriptions import DEPTHS, descriptor_words, texts_of
from sparseeinsum.kernels.static_data import StaticText, StaticWords

REGISTRY = "registry"  # the symbol of its words
HINT_FUNCTION = "tensor_no_tuples"
ROW_NUMBERS_FUNCTION = "tensor_row_numbers"
_INIT = "read_threads"  # the callback before a statement of functions that compute slices of a result
ENTRY_FIELDS = ("position", "val")  # of an element of ENTRIES
MATCH_FIELDS = ("position", "u", "v")  # of an element of MATCHES
_OF_ROW_PRODUCTS = {
    ValueType.ENTRIES: "multiply_rows",
    ValueType.MATCHES: "match_rows",
    ValueType.NUMBER: "multiply_numbers",
}
_ENTRY_ARRAYS = {
    "tensor_entries": "entry_numbers",
    "tensor_at_rows": "elements_at_rows",
    "tensor_at_positions": "elements_at_positions",
}
_FIELDS = {ValueType.ENTRIES: ENTRY_FIELDS, ValueType.MATCHES: MATCH_FIELDS}

_NAMES = {
    r.INTEGER: "INTEGER",
    r.BIGINT: "BIGINT",
    r.FLOAT: "FLOAT",
    r.DOUBLE: "DOUBLE",
    r.VARCHAR: "VARCHAR",
    r.BLOB: "BLOB",
}
_TYPES = {
    "f64": r.DOUBLE,
    "f32": r.FLOAT,
    "i64": r.BIGINT,
    "c128": r.DOUBLE,
    "c64": r.FLOAT,
}  # of an element of an array

# DuckDB computes calls with constant arguments while it plans, where an array is a list of boxed values: that takes a
# hundred milliseconds for 180,000 elements. A function that is declared volatile is computed when the query runs.
_NOT_FOLDED = frozenset(("tensor_fill", "tensor_keep"))
# It also computes a call twice if its result is filtered, once for the filter, unless the function is volatile.
_COMPUTED_ONCE = (FunctionKind.GATHER, FunctionKind.ENTRIES, FunctionKind.ROW_PRODUCT)
_LARGEST_VECTOR = 128 << 30  # bytes; DuckDB's limit
# The kinds of functions that read memory by handle.
_READERS = (*_COMPUTED_ONCE, FunctionKind.VIEW, FunctionKind.KEEPER)
_OF_GATHERS = {  # callbacks of functions that are no sums over the entries of a row, by kernel
    "sparse_matmul": "multiply_by_array",
    "sparse_matmul_transposed": "multiply_transposed",
    "sparse_matvec": "multiply_by_vector",
}
_RESULTS = ("value", "list", "lists")  # results by their depth (see DEPTHS), in the names of callbacks

_TEXTS = (
    StaticText("unconnected", "sparseeinsum: DuckDB gives no connection to register functions on"),
    StaticText("refused", "sparseeinsum: DuckDB refused the function %s; is there another of this name?"),
    StaticText(
        "other_database", "sparseeinsum: another DuckDB of this process has loaded this file; give this one a copy"
    ),
    StaticText("hint_name", HINT_FUNCTION),
    StaticText("hint_column", "nothing"),
    *(StaticText(f"entry_{field}", field) for field in ENTRY_FIELDS),
    *(StaticText(f"match_{field}", field) for field in MATCH_FIELDS),
    StaticText("row_numbers_name", ROW_NUMBERS_FUNCTION),
    StaticText("row_numbers_column", "row_number"),
    StaticText("function_list_name", FUNCTION_LIST_FUNCTION),
)
# The words of table functions, see registry_layout.py.
_TABLE_FUNCTIONS: tuple[tuple[int | str, ...], ...] = (
    ("hint_name", "hint_column", "hint_bind", "hint_init", "hint_scan", 0),
    ("row_numbers_name", "row_numbers_info", "row_numbers_bind", "row_numbers_init", "row_numbers_scan", 2),
    ("function_list_name", FUNCTION_LIST, "function_list_bind", "function_list_init", "function_list_scan", 0),
)


def registry() -> Iterator[StaticText | StaticWords]:
    """Yield all data of the registry; words also name the machine code of kernels and callbacks."""
    yield from texts_of(array_functions())
    yield from _TEXTS
    yield from function_list()
    entries: list[int | str] = []
    for function in sorted(array_functions(), key=lambda function: function.name):
        for dtype in function.dtypes:
            descriptor = _descriptor(function, dtype)
            yield descriptor
            entries += _entry(function, dtype, descriptor.name)
    yield StaticWords("entries", tuple(entries))
    names = (f"entry_{field}" for field in ENTRY_FIELDS), (f"match_{field}" for field in MATCH_FIELDS)
    yield StaticWords("entry_fields", tuple(itertools.chain(*names)))
    yield StaticWords("row_numbers_info", ("row_numbers_column", "table_data_destroy"))
    yield StaticWords("table_functions", tuple(word for function in _TABLE_FUNCTIONS for word in function))
    words: dict[int, int | str] = {
        r.ENTRIES: "entries",
        r.ENTRY_COUNT: len(entries) // r.ENTRY_WORDS,
        r.LARGEST_VECTOR: _LARGEST_VECTOR,
        r.UNCONNECTED: "unconnected",
        r.REFUSED: "refused",
        r.OTHER_DATABASE: "other_database",
        r.TABLE_FUNCTIONS: "table_functions",
        r.TABLE_FUNCTION_COUNT: len(_TABLE_FUNCTIONS),
        r.ENTRY_FIELDS: "entry_fields",
    }
    yield StaticWords(REGISTRY, tuple(words[place] for place in range(r.REGISTRY_WORDS)))


def _descriptor(function: ArrayFunction, dtype: str) -> StaticWords:
    """Return the descriptor that DuckDB passes to a callback; the limit of results is set where the library runs."""
    words = descriptor_words(function, dtype)
    if function.uses_resident_arrays:
        words[d.ELEMENT_TYPE] = _TYPES[dtype]
    types = "_".join(argument.type.lower() for argument in function.arguments)
    return StaticWords(f"descriptor_{function.name}_{types}_{dtype}", tuple(words), is_constant=False)


def _entry(function: ArrayFunction, dtype: str, descriptor: str) -> list[int | str]:
    words: list[int | str] = [0] * r.ENTRY_WORDS
    words[r.NAME], words[r.DESCRIPTOR] = f"name_{function.name}", descriptor
    words[r.IS_AGGREGATE] = int(function.is_aggregate)
    is_placed = function.returns == ValueType.RESERVED and not function.is_aggregate
    words[r.IS_VOLATILE] = int(function.name in _NOT_FOLDED or function.kind in _COMPUTED_ONCE or is_placed)
    words[r.TAKES_NULL] = int(function.kind in _READERS)  # a NULL handle stands for an array of fills
    words[r.RETURNS] = _type(function.returns, dtype)
    words[r.PARAMETER_COUNT] = len(function.arguments)
    for place, argument in enumerate(function.arguments, r.PARAMETERS):
        words[place] = _type(argument.type, dtype)
    for place, callback in enumerate(_callbacks(function), r.CALLBACKS):
        words[place] = callback
    return words


def _callbacks(function: ArrayFunction) -> tuple[str, ...]:
    if function.is_aggregate:
        return _aggregate_callbacks(function)
    if function.kind == FunctionKind.VIEW:
        return ("view_rows",)
    if function.kind == FunctionKind.GATHER:
        return (_gather_callback(function), _INIT)
    if function.kind == FunctionKind.ENTRIES:
        return (_ENTRY_ARRAYS[function.name],)
    if function.kind == FunctionKind.KEEPER:
        return ("keep_rows",)
    if function.kind == FunctionKind.CONVERSION:
        return ("array_bytes" if function.returns == ValueType.BYTES else "array_of_bytes",)
    if function.kind == FunctionKind.ROW_PRODUCT:
        return (_OF_ROW_PRODUCTS[function.returns],)
    if function.returns == ValueType.RESERVED:
        return ("placed_list", _INIT)
    kind = "checked" if function.kind == FunctionKind.CHECK else "scalar"
    return (f"{kind}_{_RESULTS[DEPTHS[function.returns]]}", _INIT)


def _aggregate_callbacks(function: ArrayFunction) -> tuple[str, ...]:
    first = function.arguments[0].type
    gathers = first == ValueType.COMPRESSED
    is_of_handles = len(function.arguments) == 1
    name, update = "aggregate", "update"
    if function.returns == ValueType.COMPRESSED:
        name, update = "compression", "update_lists" if first == ValueType.TENSOR else "update"
    elif function.returns == ValueType.COLLECTED:
        name, update = "collecting", "update_gathered" if gathers else "update"
    elif function.returns == ValueType.RESERVED:
        name = "reserving"
    elif first == ValueType.RESERVED or gathers:
        name, update = "writing", "update_gathered" if gathers else "update_handles" if is_of_handles else "update"
    finalize = "resident" if name == "aggregate" and function.uses_resident_arrays else name
    callbacks = f"{name}_size", f"{name}_init", f"{name}_{update}", f"{name}_combine"
    return (*callbacks, f"{finalize}_finalize", f"{name}_destroy")


def _gather_callback(function: ArrayFunction) -> str:
    if function.returns == ValueType.NUMBER:
        return "dot_rows"
    return _OF_GATHERS.get(function.kernel, "gather_rows")


def _type(value_type: ValueType, dtype: str) -> int:
    if value_type == ValueType.TEXT:
        return r.VARCHAR
    if value_type == ValueType.BYTES:
        return r.BLOB
    if value_type in _FIELDS:
        return _TYPES[dtype] + (r.ENTRY_OF if value_type == ValueType.ENTRIES else r.MATCH_OF) + r.LIST_DEPTH
    if value_type == ValueType.POSITIONS:
        return r.INTEGER + r.LIST_DEPTH
    is_integer = value_type in (ValueType.INTEGER, ValueType.INTEGERS) or value_type in HANDLES
    return (r.BIGINT if is_integer else _TYPES[dtype]) + r.LIST_DEPTH * DEPTHS[value_type]


def sql_type(value_type: ValueType, dtype: str) -> str:
    """Return the SQL name of the type that arguments or results have in functions of a dtype."""
    if value_type in _FIELDS:
        position, *numbers = _FIELDS[value_type]
        fields = ", ".join(f"{number} {_NAMES[_TYPES[dtype]]}" for number in numbers)
        return f'STRUCT("{position}" INTEGER, {fields})[]'
    depth, element = divmod(_type(value_type, dtype), r.LIST_DEPTH)
    return _NAMES[element] + "[]" * depth
