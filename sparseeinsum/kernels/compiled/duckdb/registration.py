"""Kernels: registers the functions of the registry with a DuckDB database, in compiled code.

The library does this for every database that is opened, or that loads it. Arguments are addresses; the address of a
word into which DuckDB writes a handle is called a slot.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.logical_types import (
    TYPE_SLOTS,
    create_type,
    create_type_of_entries,
    destroy_type,
)
from sparseeinsum.kernels.compiled.message_format import format_message
from sparseeinsum.kernels.compiled.raw_memory import array_at, call, copy_elements, free, malloc
from sparseeinsum.kernels.duckdb import registry_layout as r
from sparseeinsum.kernels.duckdb.api_table import COPIED_SLOTS

word = types.int64
state = types.int32
nothing = types.void

_connect = types.ExternalFunction("duckdb_connect", state(word, word))
_disconnect = types.ExternalFunction("duckdb_disconnect", nothing(word))
_set_callback = types.ExternalFunction("duckdb_scalar_function_set_function", nothing(word, word))
_set_scalar_init = types.ExternalFunction("duckdb_scalar_function_set_init", nothing(word, word))
_set_volatile = types.ExternalFunction("duckdb_scalar_function_set_volatile", nothing(word))
_set_takes_null = types.ExternalFunction("duckdb_scalar_function_set_special_handling", nothing(word))
_set_callbacks = types.ExternalFunction("duckdb_aggregate_function_set_functions", nothing(*[word] * 6))
_set_destructor = types.ExternalFunction("duckdb_aggregate_function_set_destructor", nothing(word, word))
_create_table_function = types.ExternalFunction("duckdb_create_table_function", word())
_destroy_table_function = types.ExternalFunction("duckdb_destroy_table_function", nothing(word))
_set_table_name = types.ExternalFunction("duckdb_table_function_set_name", nothing(word, word))
_add_table_parameter = types.ExternalFunction("duckdb_table_function_add_parameter", nothing(word, word))
_set_table_info = types.ExternalFunction("duckdb_table_function_set_extra_info", nothing(word, word, word))
_set_bind = types.ExternalFunction("duckdb_table_function_set_bind", nothing(word, word))
_set_init = types.ExternalFunction("duckdb_table_function_set_init", nothing(word, word))
_set_scan = types.ExternalFunction("duckdb_table_function_set_function", nothing(word, word))
_register_table_function = types.ExternalFunction("duckdb_register_table_function", state(word, word))
_memory_bytes = types.ExternalFunction("sparseeinsum_memory_bytes", word())

# struct duckdb_extension_access in duckdb_extension.h
_SET_ERROR, _GET_DATABASE, _GET_API, _ACCESS_WORDS = 0, 1, 2, 3

# The memory of one registration, in words: slots, then an error message.
_CONNECTION, _SET, _FUNCTION, _TYPE = range(4)
_MESSAGE = _TYPE + TYPE_SLOTS
_MESSAGE_BYTES = 256
_MEMORY_BYTES = 8 * _MESSAGE + _MESSAGE_BYTES


@njit
def load_extension(info, access, registry, functions, version):
    """Register all functions when DuckDB loads the library; returns 1, or 0 after it gave DuckDB an error.

    Args:
        info: What DuckDB passes for its own use.
        access: The address of the functions of `duckdb_extension_access`.
        registry: The address of the registry.
        functions: The address of the library's function table. DuckDB's table is copied there, because it is temporary.
        version: The address of the version of the C API.
    """
    host = array_at(access, _ACCESS_WORDS, word)
    api = call(host[_GET_API], (info, version))
    if api == 0:
        return 0  # DuckDB has reported the error itself
    table, own_table = array_at(api, COPIED_SLOTS, word), array_at(functions, COPIED_SLOTS, word)
    if own_table[0] != 0 and own_table[0] != table[0]:
        call(host[_SET_ERROR], (info, array_at(registry, r.REGISTRY_WORDS, word)[r.OTHER_DATABASE]))
        return 0
    copy_elements(own_table, table)
    return enter_extension(info, access, registry)


@njit
def enter_extension(info, access, registry):
    """Register everything through a connection that is closed again; returns 1, or 0 after it gave DuckDB an error."""
    host, words = array_at(access, _ACCESS_WORDS, word), array_at(registry, r.REGISTRY_WORDS, word)
    database = call(host[_GET_DATABASE], (info,))
    memory = malloc(_MEMORY_BYTES)
    if database == 0 or memory == 0 or _connect(array_at(database, 1, word)[0], memory + 8 * _CONNECTION) != 0:
        call(host[_SET_ERROR], (info, words[r.UNCONNECTED]))
        free(memory)
        return 0
    refused = _register_all(words, memory)
    _disconnect(memory + 8 * _CONNECTION)
    if refused != 0:
        format_message(memory + 8 * _MESSAGE, _MESSAGE_BYTES, words[r.REFUSED], (refused,))
        call(host[_SET_ERROR], (info, memory + 8 * _MESSAGE))
    free(memory)
    return 1 if refused == 0 else 0


@njit
def _register_all(registry, memory):
    """Register everything; returns 0, or the address of the name of a function that DuckDB refused."""
    limit = min(_memory_bytes() // 2, registry[r.LARGEST_VECTOR])
    first, count = 0, registry[r.ENTRY_COUNT]
    while first < count:
        entry = _entry(registry, first)
        end = first
        while end < count and _entry(registry, end)[r.NAME] == entry[r.NAME]:
            array_at(_entry(registry, end)[r.DESCRIPTOR], d.DESCRIPTOR_WORDS, word)[d.LIMIT_BYTES] = limit
            end += 1
        if entry[r.IS_AGGREGATE] != 0:
            status = _register_aggregates(registry, first, end, memory)
        else:
            status = _register_scalars(registry, first, end, memory)
        if status != 0:
            return entry[r.NAME]
        first = end
    for index in range(registry[r.TABLE_FUNCTION_COUNT]):
        function = array_at(registry[r.TABLE_FUNCTIONS] + 8 * r.TABLE_WORDS * index, r.TABLE_WORDS, word)
        if _register_table(function, memory) != 0:
            return function[r.TABLE_NAME]
    return 0


@njit
def _entry(registry, index):
    return array_at(registry[r.ENTRIES] + 8 * r.ENTRY_WORDS * index, r.ENTRY_WORDS, word)


@njit
def _slot(memory, index):
    return array_at(memory + 8 * index, 1, word)


@njit
def _set_scalar_code(function, entry):
    _set_callback(function, entry[r.CALLBACKS])
    if array_at(entry[r.DESCRIPTOR], d.DESCRIPTOR_WORDS, word)[d.COMPUTE_SLICE] != 0:
        _set_scalar_init(function, entry[r.CALLBACKS + 1])
    if entry[r.IS_VOLATILE] != 0:
        _set_volatile(function)
    if entry[r.TAKES_NULL] != 0:
        _set_takes_null(function)


@njit
def _set_aggregate_code(function, entry):
    code = entry[r.CALLBACKS : r.CALLBACKS + r.CALLBACK_COUNT]
    _set_callbacks(function, code[0], code[1], code[2], code[3], code[4])
    _set_destructor(function, code[5])


def _make_registrar(kind, set_code):
    """Make a function that registers the overloads of one name, entries `first` to `end`; kind: scalar or aggregate."""
    create_set = types.ExternalFunction(f"duckdb_create_{kind}_function_set", word(word))
    destroy_set = types.ExternalFunction(f"duckdb_destroy_{kind}_function_set", nothing(word))
    create = types.ExternalFunction(f"duckdb_create_{kind}_function", word())
    destroy = types.ExternalFunction(f"duckdb_destroy_{kind}_function", nothing(word))
    set_name = types.ExternalFunction(f"duckdb_{kind}_function_set_name", nothing(word, word))
    add_parameter = types.ExternalFunction(f"duckdb_{kind}_function_add_parameter", nothing(word, word))
    set_return_type = types.ExternalFunction(f"duckdb_{kind}_function_set_return_type", nothing(word, word))
    set_info = types.ExternalFunction(f"duckdb_{kind}_function_set_extra_info", nothing(word, word, word))
    add = types.ExternalFunction(f"duckdb_add_{kind}_function_to_set", state(word, word))
    register = types.ExternalFunction(f"duckdb_register_{kind}_function_set", state(word, word))

    @njit
    def describe(function, entry, entry_fields, slots):
        set_name(function, entry[r.NAME])
        for index in range(entry[r.PARAMETER_COUNT]):
            add_parameter(function, create_type(entry[r.PARAMETERS + index], slots))
            destroy_type(slots)
        if entry[r.RETURNS] % r.LIST_DEPTH >= r.ENTRY_OF:
            set_return_type(function, create_type_of_entries(entry[r.RETURNS], entry_fields, slots))
        else:
            set_return_type(function, create_type(entry[r.RETURNS], slots))
        destroy_type(slots)
        set_info(function, entry[r.DESCRIPTOR], 0)
        set_code(function, entry)

    @njit
    def register_overloads(registry, first, end, memory):
        overloads, function = _slot(memory, _SET), _slot(memory, _FUNCTION)
        overloads[0] = create_set(_entry(registry, first)[r.NAME])
        status = 0
        for index in range(first, end):
            function[0] = create()
            describe(function[0], _entry(registry, index), registry[r.ENTRY_FIELDS], memory + 8 * _TYPE)
            status |= add(overloads[0], function[0])
            destroy(memory + 8 * _FUNCTION)
        status |= register(_slot(memory, _CONNECTION)[0], overloads[0])
        destroy_set(memory + 8 * _SET)
        return status

    return register_overloads


_register_scalars = _make_registrar("scalar", _set_scalar_code)
_register_aggregates = _make_registrar("aggregate", _set_aggregate_code)


@njit
def _register_table(words, memory):
    """Register a table function; returns 0, or another number if DuckDB refuses it."""
    function = _slot(memory, _FUNCTION)
    function[0] = _create_table_function()
    _set_table_name(function[0], words[r.TABLE_NAME])
    _set_table_info(function[0], words[r.TABLE_INFO], 0)
    for _ in range(words[r.TABLE_PARAMETERS]):
        _add_table_parameter(function[0], create_type(r.BIGINT, memory + 8 * _TYPE))
        destroy_type(memory + 8 * _TYPE)
    _set_bind(function[0], words[r.TABLE_BIND])
    _set_init(function[0], words[r.TABLE_INIT])
    _set_scan(function[0], words[r.TABLE_SCAN])
    status = _register_table_function(_slot(memory, _CONNECTION)[0], function[0])
    _destroy_table_function(memory + 8 * _FUNCTION)
    return status
