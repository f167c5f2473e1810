"""Language: lowers program text, or its syntax trees, to a Program of EinSums."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from sparseeinsum.environment.logs import timed
from sparseeinsum.errors import ArgumentError, ParseError, SemanticsError, ShapeError
from sparseeinsum.language.assignments import lower_assignment
from sparseeinsum.language.definitions import without_definitions
from sparseeinsum.language.derivatives.complex_tensors import complex_tensors, declared_complex
from sparseeinsum.language.derivatives.modes import Derivatives, reverse_mode
from sparseeinsum.language.eingraph import DeclaredTensor, EinSum, Program, Promoted
from sparseeinsum.language.expression_checks import check_labelled
from sparseeinsum.language.matrix_statements import Shapes, no_shapes, with_labels
from sparseeinsum.language.names import ProgramNames
from sparseeinsum.language.parameters import NO_PARAMETERS, Parameters
from sparseeinsum.language.parse_trees import ParseErrorReport, raise_error
from sparseeinsum.language.program_files import read_source, read_statements
from sparseeinsum.language.syntax import (
    NOWHERE,
    STEP,
    Assignment,
    Declaration,
    Differentiation,
    Position,
    SourceText,
    StateDeclaration,
    Statement,
    is_promoted,
)
from sparseeinsum.language.tensors import Axis, Tensor

_LOGGER = logging.getLogger(__name__)


def lower_text(
    text: str,
    values: Mapping[str, object] = NO_PARAMETERS,
    folder: Path | None = None,
    shapes: Shapes = no_shapes,
) -> Program:
    """Lower program text to EinSums. The shapes of tensors are not needed yet; `bind` adds them.

    Args:
        text: The program.
        values: The values of parameters, by name.
        folder: The folder of the files that it includes; None forbids includes.
        shapes: Looks up the shapes of stored tensors, for statements of linear algebra.

    Raises:
        ParseError: The text has a syntax error, or a label, a name or a function is wrong.
        SemanticsError: A value is given for a parameter that the program does not declare.
        ArgumentError: The text is something else.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"{text!r} is no program text")
    return _read(SourceText(text), folder, values, shapes)


def lower_file(path: Path, values: Mapping[str, object] = NO_PARAMETERS, shapes: Shapes = no_shapes) -> Program:
    """Lower a file, and those that it includes, as `lower_text` does; raises OSError if it cannot be read."""
    return _read(read_source(path), path.parent, values, shapes)


def _read(source: SourceText, folder: Path | None, values: Mapping[str, object], shapes: Shapes) -> Program:
    with timed(_LOGGER, "parse"):
        parameters = Parameters(values)
        statements = read_statements(source, folder, parameters, raise_error)
        parameters.check_given()
        return lower(statements, source, parameters.declared, shapes=shapes)


def lower(
    statements: tuple[Statement, ...],
    source: SourceText,
    parameters: Mapping[str, Position] = MappingProxyType({}),
    report: ParseErrorReport = raise_error,
    shapes: Shapes = no_shapes,
) -> Program:
    """Lower statements to EinSums.

    Args:
        statements: The statements in order.
        source: The text that errors show if a statement is from no text.
        parameters: The places where parameters are declared, by name.
        report: Called with every error; if it does not raise, the program has the statements without errors.
        shapes: Looks up the shapes of stored tensors, for statements of linear algebra.

    Raises:
        ParseError: A label, a name or a function is wrong.
    """
    states = [statement for statement in statements if isinstance(statement, StateDeclaration)]
    others = [statement for statement in statements if not isinstance(statement, StateDeclaration)]
    computing = without_definitions(others, source, report)
    labelled = with_labels(computing, source, _with_step(shapes) if states else shapes, report)
    assignments = [statement for statement in labelled if isinstance(statement, Assignment)]
    names = ProgramNames(source, labelled, parameters, report)
    if not any(isinstance(statement, Assignment) for statement in others):
        problem = "the program assigns nothing; write a statement such as C[i, k] = sum(A[i, j] * B[j, k])"
        report(NOWHERE.error(problem, source))
    lowering = _Lowering(names, source)
    for statement in labelled:
        try:
            lowering.add(statement)
        except ParseError as error:
            report(error)
        if isinstance(statement, Assignment):
            names.assigned.add(statement.target.tensor)
    state = tuple(_states(states, names, report))
    kept = {following for _, following in state}
    read, derivatives = lowering.read_tensors(), lowering.derivatives
    outputs = tuple(name for name in (a.target.tensor for a in assignments) if name not in read or name in kept)
    return Program(
        tuple(lowering.einsums),
        tuple(lowering.declared),
        outputs,
        layouts=tuple(_layouts(assignments, outputs)),
        generated=tuple(names.generated.values()),
        imported=tuple(names.imported.values()),
        state=state,
        differentiated=tuple(dict.fromkeys(name for derivative in derivatives for name in derivative.differentiated)),
        complexes=tuple(dict.fromkeys(name for derivative in derivatives for name in derivative.complexes)),
    )


@dataclass(frozen=True, slots=True)
class _Lowering:
    """Collects what statements compute and declare.

    Attributes:
        names: The names of the program.
        source: The text that errors show if a statement is from no text.
        einsums: The EinSums of all statements that were added.
        declared: The tensors that they declare.
        derivatives: Their gradients.
    """

    names: ProgramNames
    source: SourceText
    einsums: list[EinSum] = field(default_factory=list)
    declared: list[DeclaredTensor] = field(default_factory=list)
    derivatives: list[Derivatives] = field(default_factory=list)

    def add(self, statement: Statement) -> None:
        """Lower a statement.

        Raises:
            ParseError: A label, a name or a function is wrong.
        """
        if isinstance(statement, Assignment):
            check_labelled(statement.value, self.source)
            self.einsums.extend(lower_assignment(statement, self.names))
        elif isinstance(statement, Differentiation):
            complexes = complex_tensors(self.einsums, declared_complex(self.declared))
            self.derivatives.append(_differentiate(statement, self.einsums, self.names, complexes))
            self.einsums.extend(self.derivatives[-1].einsums)
        elif isinstance(statement, Declaration):
            self.declared.append(_declare(statement, self.names))

    def read_tensors(self) -> set[str]:
        """The tensors that EinSums read, except those of gradients."""
        added = {einsum.output.tensor for derivative in self.derivatives for einsum in derivative.einsums}
        written = [einsum for einsum in self.einsums if einsum.output.tensor not in added]
        return {operand.tensor for einsum in written for operand in einsum.operands}


def _differentiate(
    statement: Differentiation, einsums: list[EinSum], names: ProgramNames, complexes: frozenset[str]
) -> Derivatives:
    """The EinSums of a gradient that a statement reads; errors point to the call."""
    names.check_read(statement.of, statement.at, statement.tensor)
    names.check_read(statement.by, statement.at, statement.tensor)
    try:
        derivatives = reverse_mode(einsums, statement.of, {statement.by: statement.tensor}, names, complexes=complexes)
    except SemanticsError as error:
        raise names.error(str(error), statement.at) from None
    names.assigned.add(statement.tensor)
    return derivatives


def _with_step(shapes: Shapes) -> Shapes:
    """The same, with the number of the step as a scalar; a stored tensor of that name is hidden, as in a loop."""
    return lambda name: () if name == STEP else shapes(name)


def _states(
    states: Iterable[StateDeclaration], names: ProgramNames, report: ParseErrorReport
) -> Iterator[tuple[str, str]]:
    """The states, each with the name of its next value; those without one, or declared twice, are reported."""
    seen: set[str] = set()
    for state in states:
        if state.next_value not in names.assigned:
            problem = f"{state.tensor} is a state, but nothing assigns {state.next_value}, its next value"
            report(names.error(f"{problem}; add a statement that does", state.at))
        elif state.tensor in names.assigned or state.tensor in seen:
            problem = (
                "is assigned, too; only its next value is" if state.tensor in names.assigned else "is declared twice"
            )
            report(names.error(f"the state {state.tensor} {problem}", state.at))
        else:
            seen.add(state.tensor)
            yield state.tensor, state.next_value


def _declare(declaration: Declaration, names: ProgramNames) -> DeclaredTensor:
    fill, dtype = declaration.fill, declaration.dtype
    axes = tuple(Axis(name.lower(), bound) for name, bound in declaration.axes)
    default_dtype = {bool: "bool", complex: "complex128"}.get(type(fill), "float64")
    try:
        tensor = Tensor(declaration.tensor, axes, dtype or default_dtype, 0 if fill is None else fill)
    except ShapeError as error:
        raise names.error(str(error), declaration.at) from None
    return DeclaredTensor(tensor, dtype is not None, fill is not None)


def _layouts(assignments: list[Assignment], outputs: tuple[str, ...]) -> Iterator[tuple[str, Promoted]]:
    for assignment in assignments:
        target = assignment.target
        tiles = dict.fromkeys((label.lower() for label in target.labels if is_promoted(label)), 1) | dict(target.tiles)
        if tiles and target.tensor in outputs:
            yield target.tensor, frozenset(tiles.items())
