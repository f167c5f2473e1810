"""Compiles users' scalar functions for blocks of elements, and users' aggregates for arrays of states.

Needs numba and numpy only. Both compute in float64; float32 operands of functions are widened and results rounded.
"""

from types import CellType, CodeType, FunctionType

import numpy as np
from numba import njit, types
from numba.core import errors
from numba.extending import intrinsic

PARAMETERS = 6  # parameters of the compiled functions, all int64

# The operations of an aggregate's machine code on the states at w; the first parameter selects one.
START, FOLD, COMBINE, REPEAT = range(4)


def compile_over_blocks(function, operands):
    """Compile a function of one to three numbers for blocks of elements.

    The parameters of the compiled function are the addresses of three operands and of the result, the number of
    elements, and the bytes of an element.

    Returns:
        LLVM bitcode, and in it the name of the function.

    Raises:
        ValueError: numba cannot compile it; the message says why.
    """
    scalar, returned = _compile(function, (types.float64,) * operands)
    if not _is_real(returned):
        raise ValueError(f"it returns {returned}, but must return a real number in every case")
    over_float64, over_float32 = (_over_blocks(scalar, operands, dtype) for dtype in (types.float64, types.float32))

    def run(a, b, c, out, n, item_bytes):
        if item_bytes == 8:
            over_float64(a, b, c, out, n)
        else:
            over_float32(a, b, c, out, n)
        return 0

    return _bitcode(run)


def compile_over_states(fold, identity, combine, repeat, arguments):
    """Compile an aggregate for arrays of states.

    The parameters of the compiled function are an operation, the addresses w, u and v, n, and times. START writes the
    identity to n states at w; FOLD folds n elements of u, and of v, into one state at w; COMBINE merges n states at u
    into n states at w; REPEAT merges the number at u, repeated `times` times, into each of n states at w.

    Args:
        fold: (state, argument, ...) -> state.
        identity: The numbers of the first state, one to four.
        combine: (state, state) -> state.
        repeat: (number, times) -> state; None to combine states repeatedly.
        arguments: The number of arguments of the aggregate, 1 or 2.

    Returns:
        LLVM bitcode, and in it the name of the function.

    Raises:
        ValueError: numba cannot compile a part; the message says why.
    """
    numbers = len(identity)
    load, store, as_state = _state_accesses(numbers)
    start = identity[0] if numbers == 1 else tuple(identity)
    state = types.float64 if numbers == 1 else types.UniTuple(types.float64, numbers)
    fold = _compile_part("fold", fold, (state, *[types.float64] * arguments), numbers)
    combine = _compile_part("combine", combine, (state, state), numbers)
    if arguments == 1:
        repeat = _make_repeat_by_doubling(fold, combine, start, as_state) if repeat is None else repeat
        repeat = _compile_part("repeat", repeat, (types.float64, types.float64), numbers)
    fold_line = _make_fold_line(fold, load, store, as_state, arguments)
    merge_repeated = _make_merge_repeated(combine, repeat if arguments == 1 else None, load, store, as_state)

    def run(operation, w, u, v, n, times):
        if operation == START:
            for i in range(n):
                store(w, i, start)
        elif operation == FOLD:
            fold_line(w, u, v, n)
        elif operation == COMBINE:
            for i in range(n):
                store(w, i, as_state(combine(load(w, i), load(u, i))))
        else:
            merge_repeated(w, u, n, times)
        return 0

    return _bitcode(run)


def _compile(function, parameters):
    """Compile a function for parameter types; returns the compiled function and its return type."""
    compiled = _njit(_with_compiled_calls(getattr(function, "py_func", function), ()))
    try:
        compiled.compile(parameters)
    except (errors.NumbaError, errors.UnsupportedBytecodeError, NotImplementedError) as error:
        raise ValueError(_reason(str(error))) from error
    (returned,) = [overload.signature.return_type for overload in compiled.overloads.values()]
    return compiled, returned


def _njit(function):
    return njit(error_model="numpy", boundscheck=True)(function)


def _with_compiled_calls(function, callers):
    """Copy a function so that it calls compiled versions of plain functions, except itself and its callers."""
    callers = (*callers, function)

    def compiled(value):
        value = getattr(value, "__wrapped__", value) if isinstance(value, FunctionType) else value
        is_plain = isinstance(value, FunctionType) and value not in callers
        return _njit(_with_compiled_calls(value, callers)) if is_plain else value

    code, known = function.__code__, function.__globals__
    called = {name: compiled(known[name]) for name in _names_in(code) if name in known}
    cells = tuple(CellType(compiled(cell.cell_contents)) for cell in function.__closure__ or ())
    return FunctionType(code, {**known, **called}, function.__name__, function.__defaults__, cells)


def _names_in(code):
    """List the names that code reads, including the code of functions inside it."""
    inner = [name for constant in code.co_consts if isinstance(constant, CodeType) for name in _names_in(constant)]
    return [*code.co_names, *inner]


def _is_real(returned):
    return isinstance(returned, types.Float | types.Integer | types.Boolean)


def _bitcode(run):
    compiled = njit(types.int64(*[types.int64] * PARAMETERS), error_model="numpy")(run)
    (result,) = compiled.overloads.values()
    return result.library._final_module.as_bitcode(), result.fndesc.mangled_name


def _compile_part(part, function, parameters, numbers):
    """Compile a part of an aggregate, and check that it returns a state of `numbers` numbers."""
    compiled, returned = _compile(function, parameters)
    parts = (returned,) if numbers == 1 else tuple(returned) if isinstance(returned, types.BaseTuple) else ()
    if len(parts) != numbers or not all(map(_is_real, parts)):
        expected = "a real number" if numbers == 1 else f"a tuple of {numbers} real numbers"
        raise ValueError(f"its {part} returns {returned}, but must return {expected} in every case")
    return compiled


def _state_accesses(numbers):
    """Return functions that read, write and convert a state: load(address, i), store(address, i, state), as_state."""

    def unary():
        return (
            lambda at, i: _pointer(at, types.float64)[i],
            lambda state: np.float64(state),
        )

    def binary():
        return (
            lambda at, i: (_number(at, 2 * i), _number(at, 2 * i + 1)),
            lambda state: (np.float64(state[0]), np.float64(state[1])),
        )

    def ternary():
        return (
            lambda at, i: (_number(at, 3 * i), _number(at, 3 * i + 1), _number(at, 3 * i + 2)),
            lambda state: (np.float64(state[0]), np.float64(state[1]), np.float64(state[2])),
        )

    def quaternary():
        return (
            lambda at, i: (_number(at, 4 * i), _number(at, 4 * i + 1), _number(at, 4 * i + 2), _number(at, 4 * i + 3)),
            lambda state: (np.float64(state[0]), np.float64(state[1]), np.float64(state[2]), np.float64(state[3])),
        )

    load, as_state = (njit(function) for function in (unary, binary, ternary, quaternary)[numbers - 1]())

    @njit
    def store_one(at, i, state):
        _pointer(at, types.float64)[i] = state

    @njit
    def store_several(at, i, state):
        numbers_at = _pointer(at, types.float64)
        for place in range(numbers):
            numbers_at[numbers * i + place] = state[place]

    return load, store_one if numbers == 1 else store_several, as_state


@njit
def _number(at, place):
    return _pointer(at, types.float64)[place]


def _make_fold_line(fold, load, store, as_state, arguments):
    @njit
    def unary(w, u, v, n):
        state = load(w, 0)
        for i in range(n):
            state = as_state(fold(state, _number(u, i)))
        store(w, 0, state)

    @njit
    def binary(w, u, v, n):
        state = load(w, 0)
        for i in range(n):
            state = as_state(fold(state, _number(u, i), _number(v, i)))
        store(w, 0, state)

    return (unary, binary)[arguments - 1]


def _make_merge_repeated(combine, repeat, load, store, as_state):
    """Make the function for REPEAT; it does nothing for aggregates of two arguments."""

    @njit
    def merge(w, u, n, times):
        repeated = as_state(repeat(_number(u, 0), np.float64(times)))
        for i in range(n):
            store(w, i, as_state(combine(load(w, i), repeated)))

    @njit
    def nothing(w, u, n, times):
        pass

    return nothing if repeat is None else merge


def _make_repeat_by_doubling(fold, combine, start, as_state):
    """Make the function (value, times) -> state that combines states with themselves, times a power of two."""

    def repeat(value, times):
        state, power = as_state(start), as_state(fold(as_state(start), value))
        rest = np.int64(times)
        while rest > 0:
            if rest & 1 == 1:
                state = as_state(combine(state, power))
            rest >>= 1
            power = as_state(combine(power, power))
        return state

    return repeat


def _reason(message):
    """Return the line of numba's message that says what is wrong."""
    lines = [line.strip() for line in message.splitlines()]
    return next((line for line in lines if line and "Failed in nopython mode" not in line), message)


def _over_blocks(scalar, operands, dtype):
    def unary(a, b, c, out, n):
        for i in range(n):
            _pointer(out, dtype)[i] = np.float64(scalar(np.float64(_pointer(a, dtype)[i])))

    def binary(a, b, c, out, n):
        for i in range(n):
            first, second = np.float64(_pointer(a, dtype)[i]), np.float64(_pointer(b, dtype)[i])
            _pointer(out, dtype)[i] = np.float64(scalar(first, second))

    def ternary(a, b, c, out, n):
        for i in range(n):
            first, second = np.float64(_pointer(a, dtype)[i]), np.float64(_pointer(b, dtype)[i])
            _pointer(out, dtype)[i] = np.float64(scalar(first, second, np.float64(_pointer(c, dtype)[i])))

    return njit(error_model="numpy")((unary, binary, ternary)[operands - 1])


@intrinsic
def _pointer(typing_context, address, dtype):
    """Return a pointer to elements of a numba dtype at an address."""
    pointer_type = types.CPointer(dtype.dtype)

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(pointer_type))

    return pointer_type(address, dtype), generate
