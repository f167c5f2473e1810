"""Language: tensors, expressions and assignments in Python in, the Program out that the same text would give.

    A, H, T, Y = map(tensor, ("A", "H", "T", "Y"))
    T["i", "m"] = (A["i", "j"] * H["j", "m"]).sum("j")
    Y["i", "m"] = np.maximum(T["i", "m"], 0) / T["k", "l"].max()
    program(Y)

`program` writes the trees as text and reads that, so that an error can show where it is.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.expression_checks import check_depth
from sparseeinsum.language.expressions import (
    LabelledExpression,
    NamedTensor,
    Operand,
    TensorExpression,
    call,
    check_labels,
)
from sparseeinsum.language.functions import register
from sparseeinsum.language.lowering import lower_file, lower_text
from sparseeinsum.language.matrices import Matrix
from sparseeinsum.language.syntax import (
    Assignment,
    Declaration,
    LabelledStatement,
    Source,
    TensorReference,
    write_statement,
)
from sparseeinsum.operators import dtypes
from sparseeinsum.tracebacks import one_frame


def tensor(
    name: str,
    axes: Mapping[str, int] | None = None,
    fill: dtypes.Number | None = None,
    dtype: str | None = None,
) -> NamedTensor:
    """A tensor of a program, which a database has or the program computes.

    Args:
        name: Its name.
        axes: Bounds by name of axis, to declare them, as `tensor A[i: 3]` does; a result needs that where it has a
            label that stands nowhere else.
        fill: Declared value of what is absent.
        dtype: Declared dtype.

    Raises:
        SemanticsError: A name is none, or a fill or dtype is declared without axes.
    """
    check_labels((name, *(axes or ())))
    if axes is None:
        if fill is not None or dtype is not None:
            raise SemanticsError(f"tensor {name} has a fill or dtype, but no axes; declare all of it")
        return NamedTensor(name, None)
    return NamedTensor(name, Declaration(name, tuple(axes.items()), fill, dtype))


@one_frame
def program(
    source: str | NamedTensor | Mapping[str, LabelledExpression | Matrix],
    /,
    *others: NamedTensor,
    **parameters: dtypes.Number,
) -> Program:
    """Read a program from text, or build it of Python expressions.

    Args:
        source: Program text; docs/language.md has the language. Or a tensor that was assigned; what it reads and was
            assigned, too, belongs to the program. Or expressions with the labels of the result, by its name:
            `program({"Y": (A["i", "j"] * B["j", "k"]).sum("j")["i", "k"]})`; or matrices, `program({"Y": A @ B})`.
            In text without labels, `Y = A @ B`, what is not said to be something else is a matrix.
        others: Further tensors that were assigned.
        parameters: Numbers in place of those that the text declares, as in `param eta = 0.1`.

    Raises:
        ParseError: With line, column and a hint.
        SemanticsError: A tensor was not assigned, or a parameter is given that the text does not declare.
    """
    if isinstance(source, str):
        return lower_text(source, parameters)
    if parameters:
        raise SemanticsError("parameters are of text; in Python, expressions have the numbers themselves")
    statements = build(*_assigned(source), *others)
    return lower_text("\n".join(map(write_statement, statements)))


def program_of(expression: LabelledExpression | Matrix) -> Program:
    """The program whose only result is an expression, under a name that nothing in it has."""
    labelled = expression.labelled() if isinstance(expression, Matrix) else expression
    result = tensor("result")
    result.definition = labelled
    taken = {each.name.lower() for each in _in_order((result,)) if each is not result}
    name = next(name for count in itertools.count() if (name := result.name + "_" * count) not in taken)
    return program({name: labelled})


@one_frame
def read_program(path: str | Path, /, **parameters: dtypes.Number) -> Program:
    """Read a program from a file, which may include others: `include "layers.ein"` names them from its own folder.

    Args:
        path: The file; by convention its name ends in .ein.
        parameters: Numbers in place of those that the files declare, as in `param eta = 0.1`.

    Raises:
        OSError: There is no such file, or it cannot be read.
        ParseError: With file, line, column and a hint.
        SemanticsError: A parameter is given that the text does not declare.
    """
    return lower_file(Path(path), parameters)


def _assigned(source: NamedTensor | Mapping[str, LabelledExpression | Matrix]) -> Iterator[NamedTensor]:
    if isinstance(source, NamedTensor):
        yield source
        return
    for name, given in source.items():
        labelled = given.labelled() if isinstance(given, Matrix) else given
        if not isinstance(labelled, LabelledExpression):
            raise TypeError(f"{name} is to be {labelled!r}; say the labels of the result, as in expression['i', 'k']")
        result = tensor(name)
        result.definition = labelled
        yield result


def build(*results: NamedTensor) -> tuple[LabelledStatement, ...]:
    """The statements that compute some tensors: declarations, then assignments in the order of need.

    Raises:
        SemanticsError: A tensor was not assigned.
        ParseError: An expression is nested too deep.
    """
    declarations: dict[str, Declaration] = {}
    assignments = []
    for each in _in_order(results):
        if each.declaration is not None:
            declarations[each.name] = each.declaration
        if each.definition is not None:
            target = TensorReference(each.name, each.definition.labels)
            tree = each.definition.expression.tree
            check_depth(tree, Source(f"{each.name}[{', '.join(target.labels)}] = ..."))
            assignments.append(Assignment(target, tree))
    return (*declarations.values(), *assignments)


def _in_order(results: tuple[NamedTensor, ...]) -> Iterator[NamedTensor]:
    """Results and all that they read, what is read first; without recursion, because programs are long."""
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
        waiting.extend(each for each in reversed(read) if each not in begun)


def function(python: Callable[..., Any]) -> Callable[..., Any]:
    """Make a Python function of numbers a scalar function of programs, under its own name; a decorator.

    It takes one to three real numbers, computes with them in float64, and is compiled by numba when a program with it
    is planned; where a value is needed before that, Python calls it with numpy's numbers. Expressions that it is called
    with make an expression.

    Raises:
        SemanticsError: The name is taken, or the function takes something else than so many operands.

    >>> @function
    ... def clip(x, low):
    ...     return max(x, low)
    >>> clip(tensor("A")["i"], 0) * 2
    clip(A[i], 0) * 2
    """
    name = register(python)

    @functools.wraps(python)
    def apply(*operands: Operand) -> Any:  # noqa: ANN401  # what the function returns, or an expression
        if any(isinstance(operand, TensorExpression) for operand in operands):
            return call(name, *operands)
        return python(*operands)

    return apply
