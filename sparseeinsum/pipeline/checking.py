"""Pipeline: reports all errors in a program text, and declarations that nothing reads, without planning it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import DataError, ParseError, SemanticsError, ShapeError, SparseEinsumError
from sparseeinsum.language.binding import bind_einsum, check_declared
from sparseeinsum.language.eingraph import EinSum, Program
from sparseeinsum.language.index_maps import IndexMap
from sparseeinsum.language.lowering import lower
from sparseeinsum.language.matrix_statements import no_shapes
from sparseeinsum.language.names import names_read
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.program_files import read_statements
from sparseeinsum.language.scalar import axis_bounds_of
from sparseeinsum.language.syntax import (
    NOWHERE,
    STEP,
    Assignment,
    Definition,
    Import,
    Position,
    SourceText,
    StateDeclaration,
)
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.storage.fixed_keys import with_known_key
from sparseeinsum.storage.program_inputs import shapes_in, stored_inputs

_ANY_BOUND = 1  # stands for a parameter without a value: this number is allowed everywhere


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """An error, or a warning about a declaration that nothing reads.

    Attributes:
        file: The path as the user wrote it; empty for text that is not in a file.
        line: The line, from 1.
        column: The column, from 1.
        severity: `error` or `warning`.
        message: What is wrong, in one line.
    """

    file: str
    line: int
    column: int
    severity: str
    message: str


def check_source(
    source: SourceText, folder: Path | None, parameters: Mapping[str, object], engine: Engine | None
) -> list[Finding]:
    """All findings, sorted by file, line and column.

    Args:
        source: The program text.
        folder: The folder of the files that it includes.
        parameters: Values of parameters.
        engine: The database whose tensors the program reads; None knows only the declarations of the text.

    Raises:
        SemanticsError: The program does not declare one of the parameters.
    """
    return _Check(source, folder, parameters).findings(engine)


class _Check:
    def __init__(self, source: SourceText, folder: Path | None, parameters: Mapping[str, object]) -> None:
        self._source = source
        self._findings: set[Finding] = set()
        self._parameters = Parameters(parameters, stand_in=_ANY_BOUND)
        self._statements = read_statements(source, folder, self._parameters, self._report)
        self._assigned = {
            statement.target.tensor: statement.target.at
            for statement in self._statements
            if isinstance(statement, Assignment)
        }
        self._declared = {
            statement.tensor: statement.at
            for statement in self._statements
            if not isinstance(statement, Assignment | StateDeclaration | Definition)
        }
        self._defines = any(isinstance(statement, Definition) for statement in self._statements)
        self._imported = {
            statement.tensor: statement.at for statement in self._statements if isinstance(statement, Import)
        }
        self._ranks: dict[str, int] = {}

    def findings(self, engine: Engine | None) -> list[Finding]:
        """All findings, sorted by their positions."""
        if not self._findings:  # a statement that cannot be read may declare a given parameter
            self._parameters.check_given()
        if self._assigned:  # a text without assignments is meant to be included
            program = self._without_lost(self._lowered(engine))
            self._bind(program, _declared_tensors(program) if engine is None else self._stored(program, engine), engine)
            self._warn()
        elif not (self._declared or self._defines or self._parameters.declared or self._findings):
            self._lowered(engine)
        return sorted(self._findings)

    def _lowered(self, engine: Engine | None) -> Program:
        shapes = no_shapes if engine is None else shapes_in(engine)
        return lower(self._statements, self._source, self._parameters.declared, self._report, shapes)

    def _report(self, error: ParseError) -> None:
        self._findings.add(Finding(error.file or "", error.line, error.column, "error", error.problem))

    def _add(self, problem: str, at: Position, severity: str = "error") -> None:
        file = (at.source or self._source).file or ""
        self._findings.add(Finding(file, at.line, at.column, severity, " ".join(problem.split())))

    def _without_lost(self, program: Program) -> Program:
        """The program without the EinSums that read results of statements with errors."""
        lost = self._assigned.keys() - {einsum.output.tensor for einsum in program.einsums}
        einsums = []
        for einsum in program.einsums:
            if lost & _needed(einsum, program):
                lost = lost | {einsum.output.tensor}
            else:
                einsums.append(einsum)
        return replace(program, einsums=tuple(einsums))

    def _stored(self, program: Program, engine: Engine) -> dict[str, Tensor]:
        """The tensors of the database that the program reads."""
        first: dict[str, Position] = {}
        for statement in self._statements:
            for name, at in names_read(statement.value) if isinstance(statement, Assignment) else ():
                first.setdefault(name, at)

        def report(name: str, error: SparseEinsumError) -> None:
            if not (name == STEP and program.state):
                self._add(str(error), self._imported.get(name) or first.get(name, NOWHERE))

        step = {STEP: Tensor(STEP, (), "int64")} if program.state else {}
        inputs = stored_inputs(program, engine, report).stored
        return {name: stored.tensor for name, stored in inputs.items()} | step

    def _bind(self, program: Program, stored: dict[str, Tensor], engine: Engine | None) -> None:
        """Report labels, bounds and dtypes that do not fit; without a database, as far as the text declares them."""
        tensors = dict(stored)
        for einsum in program.einsums:
            at = self._position_of(einsum, program)
            self._check_ranks(einsum, tensors, at)
            if _needed(einsum, program) <= tensors.keys():
                try:
                    bind_einsum(einsum, tensors, program.generated)
                    if engine is not None:
                        _look_up_keys(einsum, program, tensors, engine)
                except (ShapeError, DataError) as error:
                    self._add(str(error), at)
                except SemanticsError as error:
                    if engine is not None:  # without a database, dtypes are unknown
                        self._add(str(error), at)
        for declared in program.declared:
            name = declared.tensor.name
            if name in tensors:
                try:
                    check_declared(declared, tensors[name], "the database has" if name in stored else "computes")
                except ShapeError as error:
                    self._add(str(error), self._declared[name])

    def _check_ranks(self, einsum: EinSum, tensors: Mapping[str, Tensor], at: Position) -> None:
        """Report unknown tensors whose number of labels differs from that of their first use."""
        for name, labels in ((reference.tensor, reference.labels) for reference in (*einsum.operands, einsum.output)):
            rank = self._ranks.setdefault(name, len(labels))
            if rank != len(labels) and name not in tensors:
                labels_here = "1 label" if len(labels) == 1 else f"{len(labels)} labels"
                self._add(f"{name} has {labels_here} here, but {rank} before; one for every axis is needed", at)

    def _position_of(self, einsum: EinSum, program: Program) -> Position:
        """The position of the statement that an EinSum comes from."""
        following = program.einsums[program.einsums.index(einsum) :]
        results = (einsum.output.tensor for einsum in following)
        return next(self._assigned[name] for name in results if name in self._assigned)

    def _warn(self) -> None:
        """Warn about declarations that nothing reads; an included file may declare more than the text needs."""
        assignments = [statement for statement in self._statements if isinstance(statement, Assignment)]
        read = {name for assignment in assignments for name, _ in names_read(assignment.value)}
        used = read | self._assigned.keys()
        unused = [(f"the tensor {name}", at) for name, at in self._declared.items() if name not in used]
        parameters = self._parameters
        unused += [
            (f"the parameter {name}", at) for name, at in parameters.declared.items() if name not in parameters.read
        ]
        for subject, at in unused:
            if at.source == self._source:
                self._add(f"nothing reads {subject}", at, "warning")


def _look_up_keys(einsum: EinSum, program: Program, tensors: Mapping[str, Tensor], engine: Engine) -> None:
    """Look up the natural keys that an EinSum fixes, which raises the errors of `with_known_key`."""
    read = {operand.tensor for operand in einsum.operands}
    for index_map in program.generated:
        if isinstance(index_map, IndexMap) and index_map.name in read:
            with_known_key(index_map, tensors[index_map.name], engine)


def _declared_tensors(program: Program) -> dict[str, Tensor]:
    """The inputs whose shapes the text declares, by name."""
    tensors = {
        declared.tensor.name: declared.tensor for declared in program.declared if declared.tensor.name in program.inputs
    }
    for table in program.imported:
        bounds = [bound for _, bound in table.axes if bound is not None]
        if len(bounds) == len(table.axes):
            axes = tuple(Axis(name.lower(), bound) for (name, _), bound in zip(table.axes, bounds, strict=True))
            tensors[table.tensor] = Tensor(table.tensor, axes, table.dtype or "float64")
    return tensors


def _needed(einsum: EinSum, program: Program) -> set[str]:
    """Names of the tensors that an EinSum reads, or whose bounds it uses."""
    generated = {tensor.name: tensor for tensor in program.generated}
    read = {operand.tensor for operand in einsum.operands}
    bounds = list(axis_bounds_of(einsum.join))
    bounds += [bound for name in read if name in generated for bound in generated[name].bounding_axes()]
    return (read - generated.keys()) | {bound.tensor for bound in bounds}
