"""Scalar expressions over arrays: what `tensor_map` and `tensor_reduce` compute when no kernel has their name.

An expression such as `'abs(u - v) ^ 2'` is read once into a postfix program and then evaluated block by block,
so that each operation runs over up to BLOCK elements at a time. Self-contained: numba and numpy only, no
allocation. A host supplies the external symbol `strtod`.

A *program* is an int64 array: program[0] operations, then one code an operation.
"""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

BLOCK = 256
MAX_DEPTH = 16
MAX_OPERATIONS = 512
MAX_CONSTANTS = 256
MAX_DIGITS = 40

# The names an expression may use, in the order of their codes (language/scalar.py has the same lists).
OPERATORS = "+-*/^"
UNARY_FUNCTIONS = ("neg", "abs", "exp", "log", "sqrt", "sign", "relu", "sigmoid", "tanh")
BINARY_FUNCTIONS = ("min", "max")

# Codes: 0 and 1 are the operands u and v, then operators, functions of one and of two, constants by position.
_FIRST_OPERATOR = 2
_FIRST_UNARY = 16
_FIRST_BINARY = 32
_FIRST_CONSTANT = 64
# What else may wait on the stack of operators.
_OPEN = -1  # an open parenthesis
_SECOND = -2  # the same, behind the comma between two arguments
_SIGN = -3  # a minus before its operand: it binds less than a power, where the function neg binds more

BAD_EXPRESSION = -11
UNKNOWN_NAME = -12
EXPRESSION_TOO_LONG = -13
MISSING_OPERAND = -14

_OPERATOR_BYTES = np.frombuffer(OPERATORS.encode(), dtype=np.uint8)
_CONSTANT_BYTES = np.frombuffer(b"inf|nan", dtype=np.uint8)
_FUNCTION_BYTES = np.frombuffer("|".join(UNARY_FUNCTIONS + BINARY_FUNCTIONS).encode(), dtype=np.uint8)
_UNARY_COUNT = len(UNARY_FUNCTIONS)
_NEGATE = _FIRST_UNARY
_POWER = _FIRST_OPERATOR + 4
_SPACE, _OPENS, _CLOSES, _COMMA, _MINUS, _POINT = 32, 40, 41, 44, 45, 46

_strtod = types.ExternalFunction("strtod", types.float64(types.int64, types.int64))


@njit
def _index_of(names, text, start, stop):
    """Position of text[start:stop] in a list of names joined by `|`, or -1."""
    index, at, matching = 0, start, True
    for position in range(names.size + 1):
        if position == names.size or names[position] == 124:
            if matching and at == stop:
                return index
            index, at, matching = index + 1, start, True
        elif matching and at < stop and names[position] == text[at]:
            at += 1
        else:
            matching = False
    return -1


@njit
def compile_expression(text, operands, program, constants, stack, digits):
    """Read an infix expression of u (and v, where operands is 2) into a postfix program.

    text: (n,) uint8; program: (1 + 2 * MAX_OPERATIONS,) int64 and constants: (1 + MAX_CONSTANTS,) float64, written,
    their lengths first; stack: (1 + MAX_OPERATIONS,) int64, digits: (1 + MAX_DIGITS,) uint8, scratch.
    Returns 0 or a negative code.
    """
    program[0] = 0
    constants[0] = 0.0
    stack[0] = 0  # operators waiting, then the operators themselves
    function = _index_of(_FUNCTION_BYTES, text, 0, text.size)
    if 0 <= function < _UNARY_COUNT:  # a function's name alone: of u
        _emit(program, 0)
        _emit(program, _FIRST_UNARY + function)
        return 0
    position, wants_operand = 0, True
    while position < text.size:
        if text[position] == _SPACE:
            position += 1
            continue
        if stack[0] >= MAX_OPERATIONS - 1 or program[0] >= MAX_OPERATIONS - 1:
            return EXPRESSION_TOO_LONG
        if wants_operand:
            stop = _read_operand(text, position, operands, program, constants, stack, digits)
            wants_operand = not _ends_operand(text, position)
        else:
            stop = _read_operator(text, position, program, stack)
            wants_operand = text[position] != _CLOSES
        if stop < 0:
            return stop
        position = stop
    if wants_operand:
        return BAD_EXPRESSION
    while stack[0] > 0:
        if not _pop(stack, program):
            return BAD_EXPRESSION
    return _check_program(program)


@njit
def _read_operand(text, position, operands, program, constants, stack, digits):
    """Take what may stand before an operator; returns the position behind it, or a negative code."""
    character = text[position]
    if character == _OPENS:
        _push(stack, _OPEN)
        return position + 1
    if character == _MINUS:
        _push(stack, _SIGN)
        return position + 1
    if _is_digit(character) or character == _POINT:
        return _read_number(text, position, program, constants, stack, digits)
    stop = _name_end(text, position)
    constant = _index_of(_CONSTANT_BYTES, text, position, stop)
    if constant >= 0:
        code = _add_constant(program, constants, np.inf if constant == 0 else np.nan)
        return code if code < 0 else stop
    code = _name_code(text, position, stop, operands)
    if code < 0:
        return code
    if code < _FIRST_UNARY:
        _emit(program, code)
    else:
        _push(stack, code)
    return stop


@njit
def _ends_operand(text, position):
    """Whether the operand at `position` is whole: u, v or a number, but no function, minus or parenthesis."""
    character = text[position]
    if character == _OPENS or character == _MINUS:
        return False
    stop = _name_end(text, position)
    while stop < text.size and text[stop] == _SPACE:
        stop += 1
    return not (_is_letter(character) and stop < text.size and text[stop] == _OPENS)


@njit
def _read_operator(text, position, program, stack):
    """Take what may stand after an operand; returns the position behind it, or a negative code."""
    character = text[position]
    if character == _CLOSES or character == _COMMA:
        while stack[0] > 0 and not _is_open(stack[stack[0]]):
            _pop(stack, program)
        if stack[0] == 0 or not _end_argument(character, stack, program):
            return BAD_EXPRESSION
        return position + 1
    operator = _operator_code(character)
    if operator < 0:
        return BAD_EXPRESSION
    while stack[0] > 0 and _binds_before(stack[stack[0]], operator):
        _pop(stack, program)
    _push(stack, operator)
    return position + 1


@njit
def _is_open(code):
    return code == _OPEN or code == _SECOND


@njit
def _end_argument(character, stack, program):
    """Take a comma, or close a parenthesis; False where the function before it has another number of arguments."""
    is_first = stack[stack[0]] == _OPEN
    function = stack[stack[0] - 1] if stack[0] > 1 else _OPEN
    takes_two = function >= _FIRST_BINARY
    if character == _COMMA:
        stack[stack[0]] = _SECOND
        return is_first and takes_two
    stack[0] -= 1
    if function >= _FIRST_UNARY:
        _pop(stack, program)
    return is_first != takes_two


@njit
def _push(stack, code):
    stack[0] += 1
    stack[stack[0]] = code


@njit
def _emit(program, code):
    program[0] += 1
    program[program[0]] = code


@njit
def _pop(stack, program):
    """Move the last waiting operator into the program; False where it is an open parenthesis."""
    code = stack[stack[0]]
    stack[0] -= 1
    if _is_open(code):
        return False
    _emit(program, _NEGATE if code == _SIGN else code)
    return True


@njit
def _precedence(code):
    if code == _POWER:
        return 4
    if code == _SIGN:
        return 3
    if code >= _FIRST_UNARY or _is_open(code):
        return 0  # waits for its parenthesis
    return 1 if code < _FIRST_OPERATOR + 2 else 2


@njit
def _binds_before(waiting, operator):
    if operator == _POWER:  # binds to the right: u ^ v ^ w is u ^ (v ^ w)
        return _precedence(waiting) > 4
    return _precedence(waiting) >= _precedence(operator)


@njit
def _operator_code(character):
    for index in range(_OPERATOR_BYTES.size):
        if _OPERATOR_BYTES[index] == character:
            return _FIRST_OPERATOR + index
    return -1


@njit
def _is_digit(character):
    return 48 <= character <= 57


@njit
def _is_letter(character):
    return 97 <= character <= 122 or 65 <= character <= 90


@njit
def _name_end(text, position):
    while position < text.size and _is_letter(text[position]):
        position += 1
    return position


@njit
def _name_code(text, start, stop, operands):
    if stop == start:
        return BAD_EXPRESSION
    if stop == start + 1 and (text[start] == 117 or text[start] == 118):  # u, v
        operand = np.int64(text[start]) - 117
        return operand if operand < operands else MISSING_OPERAND
    index = _index_of(_FUNCTION_BYTES, text, start, stop)
    if index < 0:
        return UNKNOWN_NAME
    return _FIRST_UNARY + index if index < _UNARY_COUNT else _FIRST_BINARY + index - _UNARY_COUNT


@njit
def _read_number(text, position, program, constants, stack, digits):
    stop = position
    while stop < text.size and _continues_number(text, position, stop):
        if stop - position >= MAX_DIGITS:
            return EXPRESSION_TOO_LONG
        digits[stop - position] = text[stop]
        stop += 1
    digits[stop - position] = 0
    end = stack[stack[0] + 1 : stack[0] + 2]  # a free word, for the address where strtod stops
    number = _strtod(digits.ctypes.data, end.ctypes.data)
    if end[0] != digits.ctypes.data + stop - position:
        return BAD_EXPRESSION
    code = _add_constant(program, constants, number)
    return code if code < 0 else stop


@njit
def _add_constant(program, constants, value):
    count = np.int64(constants[0])
    if count == MAX_CONSTANTS:
        return EXPRESSION_TOO_LONG
    constants[1 + count] = value
    constants[0] = count + 1.0
    _emit(program, _FIRST_CONSTANT + count)
    return 0


@njit
def _continues_number(text, start, position):
    character = text[position]
    if _is_digit(character) or character == _POINT or character == 101:  # e
        return True
    is_sign = character == _MINUS or character == 43
    return is_sign and position > start and text[position - 1] == 101


@njit
def _operands_of(code):
    if code < _FIRST_OPERATOR or code >= _FIRST_CONSTANT:
        return 0
    return 1 if _FIRST_UNARY <= code < _FIRST_BINARY else 2


@njit
def _check_program(program):
    """Whether the program leaves exactly one value and never more than MAX_DEPTH."""
    depth = 0
    for position in range(1, program[0] + 1):
        taken = _operands_of(program[position])
        if depth < taken:
            return BAD_EXPRESSION
        depth += 1 - taken
        if depth > MAX_DEPTH:
            return EXPRESSION_TOO_LONG
    return 0 if depth == 1 else BAD_EXPRESSION


@njit
def evaluate_block(program, constants, u, v, stack):
    """Run a program over one block: u, v, (n,) with n <= BLOCK; stack: (MAX_DEPTH * BLOCK,), one dtype.

    The result is stack[0:n].
    """
    n = u.size
    depth = 0
    for position in range(1, program[0] + 1):
        code = program[position]
        taken = _operands_of(code)
        depth -= taken
        first = stack[depth * BLOCK : depth * BLOCK + n]
        second = stack[(depth + 1) * BLOCK : (depth + 1) * BLOCK + n] if taken == 2 else first
        if taken == 0:
            _load(code, constants, u, v, first)
        elif taken == 1:
            _apply_unary(code - _FIRST_UNARY, first)
        else:
            _apply_binary(code, first, second)
        depth += 1


@njit
def _load(code, constants, u, v, out):
    if code == 0:
        for i in range(out.size):
            out[i] = u[i]
    elif code == 1:
        for i in range(out.size):
            out[i] = v[i]
    else:
        value = constants[1 + code - _FIRST_CONSTANT]
        for i in range(out.size):
            out[i] = value


@njit
def _apply_binary(code, a, b):
    operator = code - _FIRST_OPERATOR
    if operator == 0:
        for i in range(a.size):
            a[i] += b[i]
    elif operator == 1:
        for i in range(a.size):
            a[i] -= b[i]
    elif operator == 2:
        for i in range(a.size):
            a[i] *= b[i]
    elif operator == 3:
        for i in range(a.size):
            a[i] /= b[i]
    elif operator == 4:
        for i in range(a.size):
            a[i] = a[i] * a[i] if b[i] == 2 else a[i] ** b[i]
    elif code == _FIRST_BINARY:
        for i in range(a.size):
            a[i] = np.minimum(a[i], b[i])
    else:
        for i in range(a.size):
            a[i] = np.maximum(a[i], b[i])


@njit
def _apply_unary(function, a):
    one = a.dtype.type(1)
    zero = a.dtype.type(0)
    if function == 0:
        for i in range(a.size):
            a[i] = -a[i]
    elif function == 1:
        for i in range(a.size):
            a[i] = abs(a[i])
    elif function == 2:
        for i in range(a.size):
            a[i] = _exponential(np.float64(a[i]))
    elif function == 3:
        for i in range(a.size):
            a[i] = np.log(a[i])
    elif function == 4:
        for i in range(a.size):
            a[i] = np.sqrt(a[i])
    elif function == 5:
        for i in range(a.size):
            a[i] = np.sign(a[i]) + zero  # numpy's sign of -0 is 0
    elif function == 6:
        for i in range(a.size):
            a[i] = zero if a[i] <= zero else a[i]
    elif function == 7:
        for i in range(a.size):
            a[i] = one / (one + a.dtype.type(_exponential(-np.float64(a[i]))))
    else:
        for i in range(a.size):
            a[i] = np.tanh(a[i])


# exp(x) = 2^k exp(r) with r = x - k ln 2: the polynomial of exp(r), scaled in two steps, so that results beyond the
# range of one scale become infinite or subnormal as they should. Without branches, several elements go at a time.
_LIMIT = 800.0  # exp is infinite, or 0, well before
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # few enough digits that k times this is exact
_LN2_LOW = 1.90821492927058770002e-10
_TO_WHOLE = 6755399441055744.0  # 1.5 * 2^52: added to a number, it leaves the nearest whole one in the lowest bits
_EXPONENT_BIAS = 1023
_MANTISSA_BITS = 52


@njit(fastmath={"contract"})
def _exponential(x):
    """exp(x) of a double within an ulp or two."""
    x = _LIMIT if x > _LIMIT else x
    x = -_LIMIT if x < -_LIMIT else x
    shifted = x * _LOG2_E + _TO_WHOLE
    k = shifted - _TO_WHOLE
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    half = k * 0.5 + _TO_WHOLE
    first = _bits_of(half) - _bits_of(_TO_WHOLE)
    second = _bits_of(shifted) - _bits_of(_TO_WHOLE) - first
    return _exponential_near_zero(r) * _power_of_two(first) * _power_of_two(second)


@njit(fastmath={"contract"})
def _exponential_near_zero(r):
    """The Taylor series of exp to r^13, for |r| <= ln 2 / 2."""
    p = r * (1 / 6227020800) + 1 / 479001600
    p = p * r + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 0.5
    return 1 + (r + r * r * p)


@njit
def _power_of_two(exponent):
    return _number_of((exponent + _EXPONENT_BIAS) << _MANTISSA_BITS)


@intrinsic
def _bits_of(typing_context, number):
    """The bits of a double as an int64."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def _number_of(typing_context, bits):
    """The double of some bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate
