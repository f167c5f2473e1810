"""Evaluating scalar expressions: the programs that expression.py reads, block by block over arrays.

Each operation runs over up to BLOCK elements at a time. Comparisons and logic give 0 or 1; whatever is not 0 is true,
NaN, too. A *body* is what a function computes of one element; it returns a value, or a value and 0 or a code. Codes of
several elements are or-ed, which is fast: what comes out of those that one body has must be one of them.
Self-contained: numba and numpy only, no allocation.
"""

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

BLOCK = 256

FIRST_ADDRESS = 1 << 16  # codes from here on are addresses of users' functions, which no memory has below
UNKNOWN_FUNCTION = -16

_FIRST_CONSTANT = 2


@njit
def evaluate_block(program, constants, u, v, stack, block, constant, apply):
    """Run a program over one block: u, v, (n,) with n <= block; stack: (MAX_DEPTH * block,), one dtype.

    constant(constants, index) gives a literal's value, and apply(code, a, b, c) computes a function in place of
    a; it returns 0 or a code, and so does this. The result is stack[0:n].
    """
    n = u.size
    depth = 0
    for position in range(1, program[0] + 1):
        taken, code = program[position] & 3, program[position] >> 2
        depth -= taken
        first = stack[depth * block : depth * block + n]
        second = stack[(depth + 1) * block : (depth + 1) * block + n] if taken > 1 else first
        third = stack[(depth + 2) * block : (depth + 2) * block + n] if taken > 2 else first
        if taken > 0:
            failure = apply(code, first, second, third)
            if failure < 0:
                return failure
        elif code < _FIRST_CONSTANT:
            _copy(u if code == 0 else v, first)
        else:
            _spread(constant(constants, code - _FIRST_CONSTANT), first)
        depth += 1
    return 0


@njit
def _copy(source, out):
    for i in range(out.size):
        out[i] = source[i]


@njit
def _spread(value, out):
    for i in range(out.size):
        out[i] = value


@njit
def constant(constants, index):
    """The value of a literal, as a float64."""
    return constants[1 + index]


def applying(bodies, calls_users):
    """A function apply(code, a, b, c) that puts the function of a code into a, element by element.

    bodies: (operands, body) by code; the body is None where these numbers have no such function. calls_users: whether
    codes may be addresses of users' functions. It returns 0 or a code, UNKNOWN_FUNCTION for one that is none of these.
    """
    count = len(bodies)
    run = chosen([_refuse if body is None else _over_elements(operands, body) for operands, body in bodies])

    @njit
    def apply(code, a, b, c):
        if 0 <= code < count:
            return run(code, a, b, c)
        if calls_users and code >= FIRST_ADDRESS:
            addresses = (a.ctypes.data, b.ctypes.data, c.ctypes.data, a.ctypes.data)
            call_function(code, (*addresses, a.size, a.itemsize))
            return 0
        return UNKNOWN_FUNCTION

    return apply


def chosen(functions, first=0):
    """The function of a code among those from a first one on, found by halving; the code is its first argument."""
    if len(functions) == 1:
        return functions[0]
    half = len(functions) // 2
    middle, lower, upper = first + half, chosen(functions[:half], first), chosen(functions[half:], first + half)

    @njit
    def run(code, *arguments):
        return lower(code, *arguments) if code < middle else upper(code, *arguments)

    return run


@njit
def _refuse(function, a, b, c):
    return UNKNOWN_FUNCTION


def _over_elements(operands, body):
    """A step that puts body(a, ...) into a."""

    @njit
    def of_one(function, a, b, c):
        code = 0
        for i in range(a.size):
            a[i], failure = with_code(body(a[i]))
            code |= failure
        return code

    @njit
    def of_two(function, a, b, c):
        code = 0
        for i in range(a.size):
            a[i], failure = with_code(body(a[i], b[i]))
            code |= failure
        return code

    @njit
    def of_three(function, a, b, c):
        code = 0
        for i in range(a.size):
            a[i], failure = with_code(body(a[i], b[i], c[i]))
            code |= failure
        return code

    return (of_one, of_two, of_three)[operands - 1]


def joining(body):
    """A function join(u, v, out) that puts body(u, v) into out, element by element; it returns 0 or a code."""

    @njit
    def join(u, v, out):
        code = 0
        for i in range(out.size):
            out[i], failure = with_code(body(u[i], v[i]))
            code |= failure
        return code

    return join


def with_code(result):
    """What a body returns, as a value and a code."""


@overload(with_code)
def _with_code(result):
    if isinstance(result, types.BaseTuple):
        return lambda result: result
    return lambda result: (result, 0)


@intrinsic
def call_function(typing_context, address, arguments):
    """Call a user's machine code with six words; see user_function.py."""

    def generate(context, builder, signature, values):
        word = context.get_value_type(types.int64)
        function_type = cgutils.ir.FunctionType(word, [word] * 6)
        function = builder.inttoptr(values[0], function_type.as_pointer())
        return builder.call(function, cgutils.unpack_tuple(builder, values[1], 6))

    return types.int64(types.int64, types.UniTuple(types.int64, 6)), generate
