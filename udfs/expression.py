"""Reading scalar expressions, which `tensor_map` and `tensor_reduce` compute, into programs.

An expression such as `'where(u < v, abs(u - v) ^ 2, 0)'` is read once into a postfix program, which evaluation.py runs.
Self-contained: numba and numpy only, no allocation. A host supplies the external function `strtod`.

A *program* is an int64 array: program[0] is the number of operations, then each has one word: 4 * its code, plus the
number of its operands, 0 to 3. Without operands, code 0 is u, 1 is v, and codes from 2 on are constants by position.
The code of a function is its position in the vocabulary (see vocabulary.py), or the address of a user's machine code.

*Constants* are a float64 array: their number, the values, the values as int64 if they are whole, and one byte for the
kind of each: WHOLE, FRACTION, IMAGINARY (the value is the imaginary part) or TOO_LARGE.

The table of *users' functions* is an int64 array: table[0] is the number of entries, then each has ENTRY_WORDS: the
length of its name, MAX_NAME bytes of the name, and its word in programs. The table also has users' aggregates. Their
names begin with @, so that no expression contains them, and their word is 8 * the address of the machine code, plus 4
if they take two arguments, plus the numbers in a state less 1.
"""

import numpy as np
from numba import njit, types

MAX_DEPTH = 16
MAX_OPERATIONS = 512
MAX_CONSTANTS = 256
CONSTANT_WORDS = 1 + 2 * MAX_CONSTANTS + MAX_CONSTANTS // 8
WHOLE, FRACTION, IMAGINARY, TOO_LARGE = range(4)
MAX_DIGITS = 40
MAX_NAME = 64
ENTRY_WORDS = 2 + MAX_NAME // 8

CONSTANTS = {"false": 0.0, "true": 1.0, "inf": np.inf, "nan": np.nan}

_FIRST_CONSTANT = 2
_MARK = ord("@")
# Besides words of programs, the stack of operators may contain:
_OPEN = -1  # an open parenthesis, minus the number of commas after it
_CALLED = 1 << 61  # added to the word of a function whose arguments are being read

BAD_EXPRESSION = -11
UNKNOWN_NAME = -12
EXPRESSION_TOO_LONG = -13
MISSING_OPERAND = -14
IMAGINARY_LITERAL = -15

_CONSTANT_NAMES = np.frombuffer("|".join(CONSTANTS).encode(), dtype=np.uint8)
_CONSTANTS = np.array([*CONSTANTS.values()])
_SPACE, _OPENS, _CLOSES, _COMMA, _MINUS, _POINT = 32, 40, 41, 44, 45, 46
_LESS, _EQUAL, _GREATER, _NEGATION, _UNDERSCORE, _IMAGINARY_UNIT, _U, _V = 60, 61, 62, 33, 95, 106, 117, 118
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

_strtod = types.ExternalFunction("strtod", types.float64(types.int64, types.int64))


@njit
def index_of(names, text, start, stop):
    """Return the position of text[start:stop] among `names`, which are joined by `|`; -1 if it is not one of them."""
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
def compile_expression(text, operands, vocabulary, user_functions, program, constants, stack, digits):
    """Read an infix expression of u, and of v if `operands` is 2, into a postfix program; returns 0 or a negative code.

    Args:
        text: (n,) uint8, the expression.
        operands: The number of operands, 1 or 2.
        words: The vocabulary.
        user_functions: The table of users' functions.
        program: (1 + 2 * MAX_OPERATIONS,) int64, written.
        constants: (CONSTANT_WORDS,) float64, written.
        stack: (1 + MAX_OPERATIONS,) int64, scratch memory for operators.
        digits: (1 + MAX_DIGITS,) uint8, scratch memory for a number.
    """
    program[0] = 0
    constants[0] = 0.0
    stack[0] = 0  # the number of operators on the stack; they follow
    function = _word_of_name(vocabulary, user_functions, text, 0, text.size)
    if function >= 0 and function & 3 == 1:  # the name of a function of one operand: apply it to u
        _emit(program, 0)
        _emit(program, function)
        return 0
    position, wants_operand = 0, True
    while position < text.size:
        if text[position] == _SPACE:
            position += 1
            continue
        if stack[0] >= MAX_OPERATIONS - 1 or program[0] >= MAX_OPERATIONS - 1:
            return EXPRESSION_TOO_LONG
        if wants_operand:
            position, wants_operand = _read_operand(
                text, position, operands, vocabulary, user_functions, program, constants, stack, digits
            )
        else:
            position, wants_operand = _read_operator(text, position, vocabulary, program, stack)
        if position < 0:
            return position
    if wants_operand:
        return BAD_EXPRESSION
    while stack[0] > 0:
        if stack[stack[0]] < 0:
            return BAD_EXPRESSION
        _emit(program, _pop(stack))
    _fold_signs(vocabulary, program, constants)
    return _check_program(program)


@njit
def wholes_of(constants):
    """Return the values of constants as int64, which are valid for the kind WHOLE."""
    return constants[1 + MAX_CONSTANTS : 1 + 2 * MAX_CONSTANTS].view(np.int64)


@njit
def kinds_of(constants):
    """Return the kinds of constants, as int8."""
    return constants[1 + 2 * MAX_CONSTANTS : CONSTANT_WORDS].view(np.int8)


@njit
def check_real(constants):
    """Return 0, or IMAGINARY_LITERAL if a constant is imaginary."""
    for index in range(np.int64(constants[0])):
        if kinds_of(constants)[index] == IMAGINARY:
            return IMAGINARY_LITERAL
    return 0


@njit
def _fold_signs(vocabulary, program, constants):
    """Apply a negation that follows a literal in the program to the literal, so that -2^63 is a literal, too."""
    count = 0
    for position in range(1, program[0] + 1):
        index = (program[count] >> 2) - _FIRST_CONSTANT if count > 0 and program[count] & 3 == 0 else -1
        if (
            program[position] == _word(vocabulary, vocabulary.negation)
            and index >= 0
            and kinds_of(constants)[index] != IMAGINARY
        ):
            _negate(constants, index)
        else:
            count += 1
            program[count] = program[position]
    program[0] = count


@njit
def _negate(constants, index):
    wholes, kinds = wholes_of(constants), kinds_of(constants)
    if kinds[index] == WHOLE:
        wholes[index] = -wholes[index]
        constants[1 + index] = 0.0 - constants[1 + index]  # a whole 0 has no sign
        return
    constants[1 + index] = -constants[1 + index]
    if wholes[index] == _LEAST:  # the literal was 2^63
        kinds[index] = WHOLE


@njit
def _read_operand(text, position, operands, vocabulary, user_functions, program, constants, stack, digits):
    """Read what may precede an operator; returns the position after it, and whether an operand must follow."""
    character = text[position]
    if character == _OPENS:
        _push(stack, _OPEN)
        return position + 1, True
    if character == _MINUS:
        _push(stack, _word(vocabulary, vocabulary.negation))
        return position + 1, True
    if _is_digit(character) or character == _POINT:
        return _read_number(text, position, program, constants, stack, digits), False
    stop = _name_end(text, position)
    operator = index_of(vocabulary.symbols, text, position, stop)
    is_inversion = operator == vocabulary.inversion
    if is_inversion and (stack[0] == 0 or _precedence(vocabulary, stack[stack[0]]) <= vocabulary.precedences[operator]):
        _push(stack, _word(vocabulary, operator))
        return stop, True
    if stop == position or operator >= 0:
        return BAD_EXPRESSION, False
    constant = index_of(_CONSTANT_NAMES, text, position, stop)
    if constant >= 0:
        value = _CONSTANTS[constant]
        is_whole = value == 0 or value == 1
        code = _add_constant(program, constants, value, WHOLE if is_whole else FRACTION, np.int64(is_whole and value))
        return (code if code < 0 else stop), False
    if stop == position + 1 and (character == _U or character == _V):
        _emit(program, 4 * (np.int64(character) - _U))
        return (stop if np.int64(character) - _U < operands else MISSING_OPERAND), False
    return _read_call(text, position, stop, vocabulary, user_functions, stack)


@njit
def _read_call(text, position, stop, vocabulary, user_functions, stack):
    """Read the parenthesis after a function's name; returns as `_read_operand`."""
    word = _word_of_name(vocabulary, user_functions, text, position, stop)
    if word < 0:
        return UNKNOWN_NAME, False
    while stop < text.size and text[stop] == _SPACE:
        stop += 1
    if stop == text.size or text[stop] != _OPENS:
        return BAD_EXPRESSION, False
    _push(stack, word + _CALLED)
    _push(stack, _OPEN)
    return stop + 1, True


@njit
def _read_operator(text, position, vocabulary, program, stack):
    """Read what may follow an operand; returns the position after it, and whether an operand must follow."""
    character = text[position]
    if character == _CLOSES or character == _COMMA:
        return _end_argument(text, position, program, stack)
    stop = _symbol_end(text, position)
    operator = index_of(vocabulary.symbols, text, position, stop)
    if operator < 0 or operator == vocabulary.inversion:
        return BAD_EXPRESSION, False
    while stack[0] > 0 and _binds_before(vocabulary, stack[stack[0]], operator):
        if (
            _compares(vocabulary, operator)
            and _precedence(vocabulary, stack[stack[0]]) == vocabulary.precedences[operator]
        ):
            return BAD_EXPRESSION, False  # u < v < 1 has no meaning
        _emit(program, _pop(stack))
    _push(stack, _word(vocabulary, operator))
    return stop, True


@njit
def _end_argument(text, position, program, stack):
    """Read a comma or a closing parenthesis, and check the number of arguments; returns as `_read_operator`."""
    while stack[0] > 0 and stack[stack[0]] >= 0:
        _emit(program, _pop(stack))
    if stack[0] == 0:
        return BAD_EXPRESSION, False
    arguments = -stack[stack[0]]
    is_call = stack[0] > 1 and stack[stack[0] - 1] >= _CALLED
    expected = stack[stack[0] - 1] & 3 if is_call else 1
    if text[position] == _COMMA:
        stack[stack[0]] -= 1
        return (position + 1 if arguments < expected else BAD_EXPRESSION), True
    if arguments != expected:
        return BAD_EXPRESSION, False
    _pop(stack)
    if is_call:
        _emit(program, _pop(stack) - _CALLED)
    return position + 1, False


@njit
def _push(stack, word):
    stack[0] += 1
    stack[stack[0]] = word


@njit
def _pop(stack):
    stack[0] -= 1
    return stack[stack[0] + 1]


@njit
def _emit(program, word):
    program[0] += 1
    program[program[0]] = word


@njit
def _word(vocabulary, function):
    return 4 * function + vocabulary.operands[function]


@njit
def _precedence(vocabulary, waiting):
    return 0 if waiting < 0 else vocabulary.precedences[waiting >> 2]


@njit
def _compares(vocabulary, operator):
    """Whether an operator is a comparison: their precedence is the next after that of `not`."""
    return vocabulary.precedences[operator] == vocabulary.precedences[vocabulary.inversion] + 1


@njit
def _binds_before(vocabulary, waiting, operator):
    if operator == vocabulary.power:  # binds to the right: u ^ v ^ w is u ^ (v ^ w)
        return False
    return _precedence(vocabulary, waiting) >= vocabulary.precedences[operator]


@njit
def _is_digit(character):
    return 48 <= character <= 57


@njit
def _is_letter(character):
    return 97 <= character <= 122 or 65 <= character <= 90 or character == _UNDERSCORE


@njit
def _name_end(text, position):
    if _is_digit(text[position]):
        return position
    while position < text.size and (_is_letter(text[position]) or _is_digit(text[position])):
        position += 1
    return position


@njit
def _symbol_end(text, position):
    """Return the position after an operator: a word, one character, or a comparison of two characters."""
    if _is_letter(text[position]):
        return _name_end(text, position)
    first = text[position]
    may_be_two = first == _LESS or first == _EQUAL or first == _GREATER or first == _NEGATION
    return position + 2 if may_be_two and position + 1 < text.size and text[position + 1] == _EQUAL else position + 1


@njit
def _word_of_name(vocabulary, user_functions, text, start, stop):
    """Return the word of the function that text[start:stop] names, or UNKNOWN_NAME."""
    index = index_of(vocabulary.names, text, start, stop)
    if index >= 0:
        return _word(vocabulary, index)
    return _word_of_user_function(user_functions, text[start:stop], 0)


@njit
def word_of_aggregate(user_functions, text):
    """Return the word of the user's aggregate that the text names, or UNKNOWN_NAME."""
    return _word_of_user_function(user_functions, text, 1)


@njit
def _word_of_user_function(user_functions, text, marks):
    """Return the word of the entry whose name is `text` after `marks` characters @, 0 or 1; or UNKNOWN_NAME."""
    for entry in range(user_functions[0]):
        at = 1 + ENTRY_WORDS * entry
        name = user_functions[at + 1 : at + ENTRY_WORDS - 1].view(np.uint8)
        if user_functions[at] == marks + text.size and (marks == 0 or name[0] == _MARK):
            same = True
            for i in range(text.size):
                same = same and name[marks + i] == text[i]
            if same:
                return user_functions[at + ENTRY_WORDS - 1]
    return UNKNOWN_NAME


@njit
def _read_number(text, position, program, constants, stack, digits):
    stop = position
    while stop < text.size and _continues_number(text, position, stop):
        if stop - position >= MAX_DIGITS:
            return EXPRESSION_TOO_LONG
        digits[stop - position] = text[stop]
        stop += 1
    digits[stop - position] = 0
    end = stack[stack[0] + 1 : stack[0] + 2]  # a free word, where strtod writes the address at which it stops
    number = _strtod(digits.ctypes.data, end.ctypes.data)
    if end[0] != digits.ctypes.data + stop - position:
        return BAD_EXPRESSION
    kind, whole = _whole_of(digits, stop - position)
    if stop < text.size and text[stop] == _IMAGINARY_UNIT:
        kind, stop = IMAGINARY, stop + 1
    code = _add_constant(program, constants, number, kind, whole)
    return code if code < 0 else stop


@njit
def _whole_of(digits, count):
    """Return the kind of a number, and its int64 value; 2^63 is TOO_LARGE, with the value -2^63."""
    negated = 0
    for i in range(count):
        if not _is_digit(digits[i]):
            return FRACTION, 0
        digit = np.int64(digits[i]) - 48
        if negated < -((_GREATEST - digit + 1) // 10):
            return TOO_LARGE, 0
        negated = 10 * negated - digit
    return (TOO_LARGE, _LEAST) if negated == _LEAST else (WHOLE, -negated)


@njit
def _add_constant(program, constants, value, kind, whole):
    count = np.int64(constants[0])
    if count == MAX_CONSTANTS:
        return EXPRESSION_TOO_LONG
    constants[1 + count] = value
    wholes_of(constants)[count] = whole
    kinds_of(constants)[count] = kind
    constants[0] = count + 1.0
    _emit(program, 4 * (_FIRST_CONSTANT + count))
    return 0


@njit
def _continues_number(text, start, position):
    character = text[position]
    if _is_digit(character) or character == _POINT or character == 101:  # e
        return True
    is_sign = character == _MINUS or character == 43
    return is_sign and position > start and text[position - 1] == 101


@njit
def _check_program(program):
    """Return 0 if the program leaves one value on the stack and never more than MAX_DEPTH, else an error code."""
    depth = 0
    for position in range(1, program[0] + 1):
        operands = program[position] & 3
        if depth < operands:
            return BAD_EXPRESSION
        depth += 1 - operands
        if depth > MAX_DEPTH:
            return EXPRESSION_TOO_LONG
    return 0 if depth == 1 else BAD_EXPRESSION
