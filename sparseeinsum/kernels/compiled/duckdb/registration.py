"""Kernels: how functions get into a DuckDB database, compiled: the registry in, its functions registered.

The library does this for every database that is opened, or that loads it. Addresses in, as everywhere; a word of memory
that DuckDB puts a handle into is called a place.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.types import create_type, destroy_type
from sparseeinsum.kernels.compiled.duckdb.vectors import free, malloc
from sparseeinsum.kernels.compiled.memory import array_at, call, copy_elements
from sparseeinsum.kernels.compiled.messages import format_message
from sparseeinsum.kernels.duckdb import registry_layout as r
from sparseeinsum.kernels.duckdb.api_table import COPIED_SLOTS

word = types.int64
state = types.int32
nothing = types.void

_connect = types.ExternalFunction("duckdb_connect", state(word, word))
_disconnect = types.ExternalFunction("duckdb_disconnect", nothing(word))
_set_callback = types.ExternalFunction("duckdb_scalar_function_set_function", nothing(word, word))
_set_volatile = types.ExternalFunction("duckdb_scalar_function_set_volatile", nothing(word))
_set_takes_null = types.ExternalFunction("duckdb_scalar_function_set_special_handling", nothing(word))
_set_callbacks = types.ExternalFunction("duckdb_aggregate_function_set_functions", nothing(*[word] * 6))
_set_destructor = types.ExternalFunction("duckdb_aggregate_function_set_destructor", nothing(word, word))
_create_table_function = types.ExternalFunction("duckdb_create_table_function", word())
_destroy_table_function = types.ExternalFunction("duckdb_destroy_table_function", nothing(word))
_set_table_name = types.ExternalFunction("duckdb_table_function_set_name", nothing(word, word))
_set_table_info = types.ExternalFunction("duckdb_table_function_set_extra_info", nothing(word, word, word))
_set_bind = types.ExternalFunction("duckdb_table_function_set_bind", nothing(word, word))
_set_init = types.ExternalFunction("duckdb_table_function_set_init", nothing(word, word))
_set_scan = types.ExternalFunction("duckdb_table_function_set_function", nothing(word, word))
_register_table_function = types.ExternalFunction("duckdb_register_table_function", state(word, word))
_memory_bytes = types.ExternalFunction("sparseeinsum_memory_bytes", word())

# struct duckdb_extension_access in duckdb_extension.h
_SET_ERROR, _GET_DATABASE, _GET_API, _ACCESS_WORDS = 0, 1, 2, 3

# Memory of one registration, in words: places, then an error's message.
_CONNECTION, _SET, _FUNCTION, _TYPE, _MESSAGE = 0, 1, 2, 3, 4
_MESSAGE_BYTES = 256
_MEMORY_BYTES = 8 * _MESSAGE + _MESSAGE_BYTES


@njit
def load_extension(info, access, registry, functions, version):
    """What a library does when DuckDB loads it: 1, or 0 after telling DuckDB what is wrong.

    `functions` is where the library keeps the table of the C API's functions through which it calls them; DuckDB
    hands out a table of a version, which does not stay.
    """
    host = array_at(access, _ACCESS_WORDS, word)
    found = call(host[_GET_API], (info, version))
    if found == 0:
        return 0  # DuckDB knows why
    table, held = array_at(found, COPIED_SLOTS, word), array_at(functions, COPIED_SLOTS, word)
    if held[0] != 0 and held[0] != table[0]:
        call(host[_SET_ERROR], (info, array_at(registry, r.REGISTRY_WORDS, word)[r.OTHER_DATABASE]))
        return 0
    copy_elements(held, table)
    return enter_extension(info, access, registry)


@njit
def enter_extension(info, access, registry):
    """Register everything on a connection of its own, closed again at once; 1, or 0 after telling what is wrong."""
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
    """0, or the address of the name of a function that DuckDB refused."""
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
    return 0 if _register_hint(registry, memory) == 0 else registry[r.HINT_NAME]


@njit
def _entry(registry, index):
    return array_at(registry[r.ENTRIES] + 8 * r.ENTRY_WORDS * index, r.ENTRY_WORDS, word)


@njit
def _place(memory, index):
    return array_at(memory + 8 * index, 1, word)


@njit
def _set_scalar_code(made, entry):
    _set_callback(made, entry[r.CALLBACKS])
    if entry[r.IS_VOLATILE] != 0:
        _set_volatile(made)
    if entry[r.TAKES_NULL] != 0:
        _set_takes_null(made)


@njit
def _set_aggregate_code(made, entry):
    code = entry[r.CALLBACKS : r.CALLBACKS + r.CALLBACK_COUNT]
    _set_callbacks(made, code[0], code[1], code[2], code[3], code[4])
    _set_destructor(made, code[5])


def _registrar(kind, set_code):
    """What registers the overloads of one name, entries `first` to `end`; the C API has it for each kind apart."""
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
    def describe(made, entry, place):
        set_name(made, entry[r.NAME])
        for index in range(entry[r.PARAMETER_COUNT]):
            add_parameter(made, create_type(entry[r.PARAMETERS + index], place))
            destroy_type(place)
        set_return_type(made, create_type(entry[r.RETURNS], place))
        destroy_type(place)
        set_info(made, entry[r.DESCRIPTOR], 0)
        set_code(made, entry)

    @njit
    def register_overloads(registry, first, end, memory):
        overloads, made = _place(memory, _SET), _place(memory, _FUNCTION)
        overloads[0] = create_set(_entry(registry, first)[r.NAME])
        status = 0
        for index in range(first, end):
            made[0] = create()
            describe(made[0], _entry(registry, index), memory + 8 * _TYPE)
            status |= add(overloads[0], made[0])
            destroy(memory + 8 * _FUNCTION)
        status |= register(_place(memory, _CONNECTION)[0], overloads[0])
        destroy_set(memory + 8 * _SET)
        return status

    return register_overloads


_register_scalars = _registrar("scalar", _set_scalar_code)
_register_aggregates = _registrar("aggregate", _set_aggregate_code)


@njit
def _register_hint(registry, memory):
    made = _place(memory, _FUNCTION)
    made[0] = _create_table_function()
    _set_table_name(made[0], registry[r.HINT_NAME])
    _set_table_info(made[0], registry[r.HINT_COLUMN], 0)
    _set_bind(made[0], registry[r.HINT_BIND])
    _set_init(made[0], registry[r.HINT_INIT])
    _set_scan(made[0], registry[r.HINT_SCAN])
    status = _register_table_function(_place(memory, _CONNECTION)[0], made[0])
    _destroy_table_function(memory + 8 * _FUNCTION)
    return status
