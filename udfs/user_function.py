"""A user's scalar function over blocks, or a user's aggregate over states: what kernels call when they name one.

Needs numba and numpy only. Both compute in float64; float32 operands of functions are widened and results rounded.
"""

from types import CellType, CodeType, FunctionType

import numpy as np
from numba import njit, types
from numba.core import errors
from numba.extending import intrinsic

PARAMETERS = 6  # words that machine code takes

# What machine code of an aggregate does with the states at w, as its first parameter says:
START, FOLD, COMBINE, REPEAT = range(4)


def compile_over_blocks(function, operands):
    """Compile a function of one to three numbers for blocks of them.

    Its parameters: addresses of three operands and of the result, elements, and bytes of an element.

    Returns:
        LLVM bitcode, and in it the name of the function.

    Raises:
        ValueError: numba cannot compile it; the message says why.
    """
    scalar, returned = _compiled(function, (types.float64,) * operands)
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
    """Compile an aggregate of one argument or two whose states are as many numbers as its identity.

    Its parameters: operation, addresses w, u and v, n, times. START puts the identity into n states; FOLD folds the n
    elements of u, and of v, into one state; COMBINE merges n states at u into those at w; REPEAT merges into each of n
    states that of the number at u so many times.

    Returns, Raises:
        As `compile_over_blocks`.
    """
    numbers = len(identity)
    load, store, as_state = _accesses(numbers)
    start = identity[0] if numbers == 1 else tuple(identity)
    state = types.float64 if numbers == 1 else types.UniTuple(types.float64, numbers)
    fold = _of_states("fold", fold, (state, *[types.float64] * arguments), numbers)
    combine = _of_states("combine", combine, (state, state), numbers)
    if arguments == 1:
        repeat = _by_doubling(fold, combine, start, as_state) if repeat is None else repeat
        repeat = _of_states("repeat", repeat, (types.float64, types.float64), numbers)
    fold_line = _folding(fold, load, store, as_state, arguments)
    merge_repeated = _repeating(combine, repeat if arguments == 1 else None, load, store, as_state)

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


def _compiled(function, parameters):
    """A function compiled for such parameters, and what it returns."""
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
    """A function that calls compiled ones where it called plain ones, but for itself and those that call it."""
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
    """Names that code reads, and that of functions defined in it."""
    inner = [name for each in code.co_consts if isinstance(each, CodeType) for name in _names_in(each)]
    return [*code.co_names, *inner]


def _is_real(returned):
    return isinstance(returned, types.Float | types.Integer | types.Boolean)


def _bitcode(run):
    compiled = njit(types.int64(*[types.int64] * PARAMETERS), error_model="numpy")(run)
    (result,) = compiled.overloads.values()
    return result.library._final_module.as_bitcode(), result.fndesc.mangled_name


def _of_states(part, function, parameters, numbers):
    """A function compiled, which must return a state."""
    compiled, returned = _compiled(function, parameters)
    parts = (returned,) if numbers == 1 else tuple(returned) if isinstance(returned, types.BaseTuple) else ()
    if len(parts) != numbers or not all(map(_is_real, parts)):
        wanted = "a real number" if numbers == 1 else f"a tuple of {numbers} real numbers"
        raise ValueError(f"its {part} returns {returned}, but must return {wanted} in every case")
    return compiled


def _accesses(numbers):
    """Functions that read, write and convert a state of so many numbers: (address, number of the state)."""

    def of_one():
        return (
            lambda at, i: _pointer(at, types.float64)[i],
            lambda state: np.float64(state),
        )

    def of_two():
        return (
            lambda at, i: (_number(at, 2 * i), _number(at, 2 * i + 1)),
            lambda state: (np.float64(state[0]), np.float64(state[1])),
        )

    def of_three():
        return (
            lambda at, i: (_number(at, 3 * i), _number(at, 3 * i + 1), _number(at, 3 * i + 2)),
            lambda state: (np.float64(state[0]), np.float64(state[1]), np.float64(state[2])),
        )

    def of_four():
        return (
            lambda at, i: (_number(at, 4 * i), _number(at, 4 * i + 1), _number(at, 4 * i + 2), _number(at, 4 * i + 3)),
            lambda state: (np.float64(state[0]), np.float64(state[1]), np.float64(state[2]), np.float64(state[3])),
        )

    load, as_state = (njit(each) for each in (of_one, of_two, of_three, of_four)[numbers - 1]())

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


def _folding(fold, load, store, as_state, arguments):
    @njit
    def of_one(w, u, v, n):
        state = load(w, 0)
        for i in range(n):
            state = as_state(fold(state, _number(u, i)))
        store(w, 0, state)

    @njit
    def of_two(w, u, v, n):
        state = load(w, 0)
        for i in range(n):
            state = as_state(fold(state, _number(u, i), _number(v, i)))
        store(w, 0, state)

    return (of_one, of_two)[arguments - 1]


def _repeating(combine, repeat, load, store, as_state):
    """What merges into n states that of a number so many times; nothing for aggregates of two arguments."""

    @njit
    def merge(w, u, n, times):
        repeated = as_state(repeat(_number(u, 0), np.float64(times)))
        for i in range(n):
            store(w, i, as_state(combine(load(w, i), repeated)))

    @njit
    def nothing(w, u, n, times):
        pass

    return nothing if repeat is None else merge


def _by_doubling(fold, combine, start, as_state):
    """(value, times) -> the state of that value so many times, by combining states with themselves."""

    def repeat(value, times):
        found, power = as_state(start), as_state(fold(as_state(start), value))
        rest = np.int64(times)
        while rest > 0:
            if rest & 1 == 1:
                found = as_state(combine(found, power))
            rest >>= 1
            power = as_state(combine(power, power))
        return found

    return repeat


def _reason(message):
    """The line of numba's message that says what is wrong."""
    lines = [line.strip() for line in message.splitlines()]
    return next((line for line in lines if line and "Failed in nopython mode" not in line), message)


def _over_blocks(scalar, operands, dtype):
    def of_one(a, b, c, out, n):
        for i in range(n):
            _pointer(out, dtype)[i] = np.float64(scalar(np.float64(_pointer(a, dtype)[i])))

    def of_two(a, b, c, out, n):
        for i in range(n):
            first, second = np.float64(_pointer(a, dtype)[i]), np.float64(_pointer(b, dtype)[i])
            _pointer(out, dtype)[i] = np.float64(scalar(first, second))

    def of_three(a, b, c, out, n):
        for i in range(n):
            first, second = np.float64(_pointer(a, dtype)[i]), np.float64(_pointer(b, dtype)[i])
            _pointer(out, dtype)[i] = np.float64(scalar(first, second, np.float64(_pointer(c, dtype)[i])))

    return njit(error_model="numpy")((of_one, of_two, of_three)[operands - 1])


@intrinsic
def _pointer(typing_context, address, dtype):
    """A pointer to elements of a numba dtype."""
    pointer_type = types.CPointer(dtype.dtype)

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(pointer_type))

    return pointer_type(address, dtype), generate
