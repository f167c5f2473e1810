"""Language: program text, or its syntax trees, in; a Program of EinSums out."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from sparseeinsum.errors import ParseError, ShapeError
from sparseeinsum.language.assignments import lower_assignment
from sparseeinsum.language.eingraph import DeclaredTensor, EinSum, Program, Promoted
from sparseeinsum.language.files import read_source, read_statements
from sparseeinsum.language.matrix_statements import Shapes, no_shapes, with_labels
from sparseeinsum.language.names import Names
from sparseeinsum.language.parameters import NO_PARAMETERS, Parameters
from sparseeinsum.language.parsing import Report, fail
from sparseeinsum.language.syntax import (
    NOWHERE,
    Assignment,
    Declaration,
    Position,
    Source,
    Statement,
    is_promoted,
)
from sparseeinsum.language.tensors import Axis, Tensor


def lower_text(
    text: str,
    given: Mapping[str, object] = NO_PARAMETERS,
    folder: Path | None = None,
    shapes: Shapes = no_shapes,
) -> Program:
    """Read program text into EinSums over names; shapes come later, from the tensors.

    Args:
        text: The program.
        given: Values of parameters, by name.
        folder: Where the files are that it includes; None where it must not.
        shapes: What a database knows of tensors that stand without labels, in linear algebra.

    Raises:
        ParseError: The text cannot be read, or a label, a name or a function makes no sense where it stands.
        SemanticsError: A parameter is given that the program does not declare.
    """
    return _read(Source(text), folder, given, shapes)


def lower_file(path: Path, given: Mapping[str, object] = NO_PARAMETERS, shapes: Shapes = no_shapes) -> Program:
    """Read a file, and those that it includes, as `lower_text` does; raises OSError, too."""
    return _read(read_source(path), path.parent, given, shapes)


def _read(source: Source, folder: Path | None, given: Mapping[str, object], shapes: Shapes) -> Program:
    parameters = Parameters(given)
    statements = read_statements(source, folder, parameters, fail)
    parameters.check_given()
    return lower(statements, source, parameters.declared, shapes=shapes)


def lower(
    statements: tuple[Statement, ...],
    source: Source,
    parameters: Mapping[str, Position] = MappingProxyType({}),
    report: Report = fail,
    shapes: Shapes = no_shapes,
) -> Program:
    """Lower statements to EinSums.

    Args:
        statements: In order.
        source: Where errors of what has no place are shown.
        parameters: Where those are declared.
        report: Told of errors; if it does not raise them, the program is that of the statements without errors.
        shapes: What a database knows of tensors that stand without labels, in linear algebra.

    Raises:
        ParseError: A label, a name or a function makes no sense where it stands.
    """
    labelled = with_labels(statements, source, shapes, report)
    assignments = [statement for statement in labelled if isinstance(statement, Assignment)]
    names = Names(source, labelled, parameters, report)
    if not assignments:
        problem = "the program assigns nothing; write a statement such as C[i, k] = sum(A[i, j] * B[j, k])"
        report(NOWHERE.error(problem, source))
    einsums: list[EinSum] = []
    declared: list[DeclaredTensor] = []
    for statement in labelled:
        try:
            if isinstance(statement, Assignment):
                einsums.extend(lower_assignment(statement, names))
            elif isinstance(statement, Declaration):
                declared.append(_declare(statement, names))
        except ParseError as error:
            report(error)
        if isinstance(statement, Assignment):
            names.assigned.add(statement.target.tensor)
    read = {operand.tensor for einsum in einsums for operand in einsum.operands}
    outputs = tuple(name for name in (a.target.tensor for a in assignments) if name not in read)
    layouts = tuple(_layouts(assignments, outputs))
    imported = tuple(names.imported.values())
    return Program(tuple(einsums), tuple(declared), outputs, layouts, tuple(names.generated.values()), imported)


def _declare(declaration: Declaration, names: Names) -> DeclaredTensor:
    fill, dtype = declaration.fill, declaration.dtype
    axes = tuple(Axis(name.lower(), bound) for name, bound in declaration.axes)
    of_fill = {bool: "bool", complex: "complex128"}.get(type(fill), "float64")
    try:
        tensor = Tensor(declaration.tensor, axes, dtype or of_fill, 0 if fill is None else fill)
    except ShapeError as error:
        raise names.error(str(error), declaration.at) from None
    return DeclaredTensor(tensor, dtype is not None, fill is not None)


def _layouts(assignments: list[Assignment], outputs: tuple[str, ...]) -> Iterator[tuple[str, Promoted]]:
    for assignment in assignments:
        target = assignment.target
        tiles = dict.fromkeys((label.lower() for label in target.labels if is_promoted(label)), 1) | dict(target.tiles)
        if tiles and target.tensor in outputs:
            yield target.tensor, frozenset(tiles.items())
