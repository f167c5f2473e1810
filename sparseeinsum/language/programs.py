"""Language: builds a Program from tensors, expressions and assignments in Python, or reads it from text and files.

    A, H, T, Y = map(tensor, ("A", "H", "T", "Y"))
    T["i", "m"] = (A["i", "j"] * H["j", "m"]).sum("j")
    Y["i", "m"] = np.maximum(T["i", "m"], 0) / T["k", "l"].max()
    program(Y)

`program` writes the syntax trees as text and parses that, so that errors can show a line and a column.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from sparseeinsum.errors import ArgumentError, SemanticsError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.expression_checks import with_limited_depth
from sparseeinsum.language.function_registration import register
from sparseeinsum.language.lowering import lower_file, lower_text
from sparseeinsum.language.matrices import Matrix
from sparseeinsum.language.python_expressions import (
    ExpressionOperand,
    LabelledExpression,
    NamedTensor,
    TensorExpression,
    call,
)
from sparseeinsum.language.python_labels import check_labels
from sparseeinsum.language.syntax import Assignment, Declaration, LabelledStatement, SourceText, TensorReference
from sparseeinsum.language.syntax_text import write_statement
from sparseeinsum.operators import dtypes
from sparseeinsum.presentation.tracebacks import one_frame


def tensor(
    name: str,
    axes: Mapping[str, int] | None = None,
    fill: dtypes.Number | None = None,
    dtype: str | None = None,
) -> NamedTensor:
    """A tensor of a program: an input from a database, or a result that is assigned.

    Args:
        name: Its name.
        axes: Bounds by name of axis, which declares them as `tensor A[i: 3]` does. A result needs a declaration if the
            right side lacks one of its labels.
        fill: The declared fill.
        dtype: The declared dtype.

    Raises:
        SemanticsError: A name is not a name, or a fill or a dtype is declared without axes.
    """
    check_labels((name, *(axes or ())))
    if axes is None:
        if fill is not None or dtype is not None:
            raise SemanticsError(f"tensor {name} has a fill or dtype, but no axes; declare the axes, too")
        return NamedTensor(name, None)
    return NamedTensor(name, Declaration(name, tuple(axes.items()), fill, dtype))


@one_frame
def program(
    source: str | NamedTensor | Mapping[str, LabelledExpression | Matrix],
    /,
    *others: NamedTensor,
    **parameters: dtypes.Number,
) -> Program:
    """Parse a program, or build it from Python expressions.

    Args:
        source: Program text, in the language of docs/language.md. Or a tensor that was assigned; the program includes
            the assigned tensors that it reads. Or expressions with labels, by the names of their results:
            `program({"Y": (A["i", "j"] * B["j", "k"]).sum("j")["i", "k"]})`; or matrices: `program({"Y": A @ B})`.
            In text without labels, such as `Y = A @ B`, names are matrices unless declared as something else.
        others: Further tensors that were assigned.
        parameters: Values for the parameters that the text declares, as in `param eta = 0.1`.

    Raises:
        ParseError: The text has an error; the message has its line, its column and a hint.
        SemanticsError: A tensor was not assigned, or a value is given for a parameter that the text does not declare.
    """
    if isinstance(source, str):
        return lower_text(source, parameters)
    if parameters:
        raise SemanticsError("only program text has parameters; in Python, put the numbers into the expressions")
    statements = build(*_assigned(source), *others)
    return lower_text("\n".join(map(write_statement, statements)))


def program_of(expression: LabelledExpression | Matrix) -> Program:
    """The program whose only result is an expression; the result has a name that no tensor in it has."""
    labelled = expression.labelled() if isinstance(expression, Matrix) else expression
    result = tensor("result")
    result.definition = labelled
    names = {other.name.lower() for other in _in_topological_order((result,)) if other is not result}
    name = next(name for count in itertools.count() if (name := result.name + "_" * count) not in names)
    return program({name: labelled})


@one_frame
def read_program(path: str | Path, /, **parameters: dtypes.Number) -> Program:
    """Read a program from a file. It can include others: `include "layers.ein"`, with a path relative to its folder.

    Args:
        path: The file; by convention its name ends in .ein.
        parameters: Values for the parameters that the files declare, as in `param eta = 0.1`.

    Raises:
        OSError: The file does not exist or cannot be read.
        ParseError: A file has an error; the message has the file, the line, the column and a hint.
        SemanticsError: A value is given for a parameter that no file declares.
    """
    return lower_file(Path(path), parameters)


def _assigned(source: NamedTensor | Mapping[str, LabelledExpression | Matrix]) -> Iterator[NamedTensor]:
    """The named results of an argument of `program`."""
    if isinstance(source, NamedTensor):
        yield source
        return
    if not isinstance(source, Mapping):
        raise ArgumentError(f"{source!r} is neither program text nor a tensor, nor expressions by names of results")
    for name, expression in source.items():
        labelled = expression.labelled() if isinstance(expression, Matrix) else expression
        if not isinstance(labelled, LabelledExpression):
            raise ArgumentError(
                f"{name} cannot be {labelled!r}; add the labels of the result, as in expression['i', 'k']"
            )
        result = tensor(name)
        result.definition = labelled
        yield result


def build(*results: NamedTensor) -> tuple[LabelledStatement, ...]:
    """The statements that compute some tensors: declarations, then assignments in topological order.

    Raises:
        SemanticsError: A tensor was not assigned.
        ParseError: An expression is nested too deep.
    """
    declarations: dict[str, Declaration] = {}
    assignments = []
    for result in _in_topological_order(results):
        if result.declaration is not None:
            declarations[result.name] = result.declaration
        if result.definition is not None:
            target = TensorReference(result.name, result.definition.labels)
            source = SourceText(f"{result.name}[{', '.join(target.labels)}] = ...")
            tree = with_limited_depth(result.definition.expression.tree, source)
            assignments.append(Assignment(target, tree))
    return (*declarations.values(), *assignments)


def _in_topological_order(results: tuple[NamedTensor, ...]) -> Iterator[NamedTensor]:
    """The results and all tensors that they read, each after those it reads. Not recursive, as programs can be long."""
    for result in results:
        if result.definition is None:
            raise SemanticsError(f"{result.name} was not assigned; write {result.name}['i', 'k'] = ...")
    begun: set[NamedTensor] = set()
    finished: set[NamedTensor] = set()
    waiting = list(reversed(results))
    while waiting:
        current = waiting[-1]
        if current in begun:
            waiting.pop()
            if current not in finished:
                finished.add(current)
                yield current
            continue
        begun.add(current)
        read = current.definition.expression.tensors if current.definition is not None else ()
        waiting.extend(tensor for tensor in reversed(read) if tensor not in begun)


@overload
def function(python: Callable[..., Any], /) -> Callable[..., Any]: ...


@overload
def function(*, derivatives: str | Sequence[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...


def function(
    python: Callable[..., Any] | None = None, /, *, derivatives: str | Sequence[str] | None = None
) -> Callable[..., Any]:
    """Register a Python function of numbers as a scalar function of programs, under its own name; a decorator.

    The function takes one to three real numbers and computes in float64. numba compiles it when a program that calls it
    is planned; for values that planning needs, Python calls it with numpy's numbers. Called with expressions, it
    returns an expression.

    Args:
        python: The function.
        derivatives: For every parameter, what a small change g of it adds to the value, as program text of g and the
            arguments u, v and w: `@se.function(derivatives="2 * g * u")` for a square, a list of them for several
            parameters. Without them, derivatives through the function are refused.

    Raises:
        SemanticsError: The name is taken, the function has other parameters than one to three plain ones, or there
            are more or fewer derivatives than parameters.
        ParseError: A derivative is no expression of g and the arguments.

    >>> @function
    ... def at_least(x, low):
    ...     return max(x, low)
    >>> at_least(tensor("A")["i"], 0) * 2
    at_least(A[i], 0) * 2
    """
    if python is None:
        return functools.partial(_registered, derivatives=derivatives)
    return _registered(python, derivatives)


def _registered(python: Callable[..., Any], derivatives: str | Sequence[str] | None) -> Callable[..., Any]:
    """The function, which takes expressions, too."""
    name = register(python, derivatives)

    @functools.wraps(python)
    def apply(*operands: ExpressionOperand) -> Any:  # noqa: ANN401  # what the function returns, or an expression
        if any(isinstance(operand, TensorExpression) for operand in operands):
            return call(name, *operands)
        return python(*operands)

    return apply
