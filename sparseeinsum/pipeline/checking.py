"""Checking: program text in, all that is wrong with it out, and what of it nothing reads; nothing is planned or run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import ParseError, SemanticsError, ShapeError, SparseEinsumError
from sparseeinsum.language.binding import bind_einsum, check_declared
from sparseeinsum.language.eingraph import EinSum, Program
from sparseeinsum.language.files import read_statements
from sparseeinsum.language.lowering import lower
from sparseeinsum.language.matrix_statements import no_shapes
from sparseeinsum.language.names import names_read
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.scalar import axis_bounds_of
from sparseeinsum.language.syntax import NOWHERE, Assignment, Import, Position, Source
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.expressions import AxisBound
from sparseeinsum.storage.program_inputs import shapes_in, stored_inputs

_ANY_BOUND = 1  # of a parameter that has no value: a number that may stand everywhere


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that is wrong, or that nothing reads.

    Attributes:
        file: As the user names it; empty for text that is in none.
        line: From 1.
        column: From 1.
        severity: `error` or `warning`.
        message: What it is, in one line.
    """

    file: str
    line: int
    column: int
    severity: str
    message: str


def check_source(
    source: Source, folder: Path | None, given: Mapping[str, object], engine: Engine | None
) -> list[Finding]:
    """All findings, by their places.

    Args:
        source: The text.
        folder: Where the files are that it includes.
        given: Values of parameters.
        engine: The database whose tensors the program is to fit; None knows only what the text declares.

    Raises:
        SemanticsError: A parameter is given that the program does not declare.
    """
    return _Check(source, folder, given).findings(engine)


class _Check:
    def __init__(self, source: Source, folder: Path | None, given: Mapping[str, object]) -> None:
        self._source = source
        self._found: set[Finding] = set()
        self._parameters = Parameters(given, stand_in=_ANY_BOUND)
        self._statements = read_statements(source, folder, self._parameters, self._report)
        self._assigned = {
            each.target.tensor: each.target.at for each in self._statements if isinstance(each, Assignment)
        }
        self._declared = {each.tensor: each.at for each in self._statements if not isinstance(each, Assignment)}
        self._imported = {each.tensor: each.at for each in self._statements if isinstance(each, Import)}
        self._ranks: dict[str, int] = {}

    def findings(self, engine: Engine | None) -> list[Finding]:
        """All of them, by their places."""
        if not self._found:  # what cannot be read may declare what is given
            self._parameters.check_given()
        if self._assigned:  # else the text is there to be included
            program = self._sound(self._lowered(engine))
            self._bind(program, _declared_tensors(program) if engine is None else self._stored(program, engine), engine)
            self._warn()
        elif not (self._declared or self._parameters.declared or self._found):
            self._lowered(engine)
        return sorted(self._found)

    def _lowered(self, engine: Engine | None) -> Program:
        shapes = no_shapes if engine is None else shapes_in(engine)
        return lower(self._statements, self._source, self._parameters.declared, self._report, shapes)

    def _report(self, error: ParseError) -> None:
        self._found.add(Finding(error.file or "", error.line, error.column, "error", error.problem))

    def _add(self, problem: str, at: Position, severity: str = "error") -> None:
        file = (at.source or self._source).file or ""
        self._found.add(Finding(file, at.line, at.column, severity, " ".join(problem.split())))

    def _sound(self, program: Program) -> Program:
        """The program without what reads results of statements that are wrong."""
        lost = self._assigned.keys() - {einsum.output.tensor for einsum in program.einsums}
        kept = []
        for einsum in program.einsums:
            if lost & _needed(einsum, program):
                lost = lost | {einsum.output.tensor}
            else:
                kept.append(einsum)
        return replace(program, einsums=tuple(kept))

    def _stored(self, program: Program, engine: Engine) -> dict[str, Tensor]:
        """The tensors of the database that the program reads."""
        first: dict[str, Position] = {}
        for each in self._statements:
            for name, at in names_read(each.value) if isinstance(each, Assignment) else ():
                first.setdefault(name, at)

        def report(name: str, error: SparseEinsumError) -> None:
            self._add(str(error), self._imported.get(name) or first.get(name, NOWHERE))

        return {name: stored.tensor for name, stored in stored_inputs(program, engine, report).items()}

    def _bind(self, program: Program, known: dict[str, Tensor], engine: Engine | None) -> None:
        """Whether labels, bounds and dtypes fit together; without a database as far as they are declared."""
        tensors = dict(known)
        for einsum in program.einsums:
            at = self._place_of(einsum, program)
            self._check_ranks(einsum, tensors, at)
            if _needed(einsum, program) <= tensors.keys():
                try:
                    bind_einsum(einsum, tensors, program.generated)
                except ShapeError as error:
                    self._add(str(error), at)
                except SemanticsError as error:
                    if engine is not None:  # else dtypes are not known
                        self._add(str(error), at)
        for declared in program.declared:
            name = declared.tensor.name
            if name in tensors:
                try:
                    check_declared(declared, tensors[name], "the database has" if name in known else "computes")
                except ShapeError as error:
                    self._add(str(error), self._declared[name])

    def _check_ranks(self, einsum: EinSum, tensors: Mapping[str, Tensor], at: Position) -> None:
        """Whether tensors of which nothing is known have as many labels as where they stand first."""
        for name, labels in ((each.tensor, each.labels) for each in (*einsum.operands, einsum.output)):
            rank = self._ranks.setdefault(name, len(labels))
            if rank != len(labels) and name not in tensors:
                labels_here = "1 label" if len(labels) == 1 else f"{len(labels)} labels"
                self._add(f"{name} has {labels_here} here, but {rank} before; one for every axis is needed", at)

    def _place_of(self, einsum: EinSum, program: Program) -> Position:
        """Where the statement stands that an EinSum is part of."""
        following = program.einsums[program.einsums.index(einsum) :]
        return next(self._assigned[each.output.tensor] for each in following if each.output.tensor in self._assigned)

    def _warn(self) -> None:
        """Of what the text declares and nothing reads; what it includes may offer more than it takes."""
        assignments = [each for each in self._statements if isinstance(each, Assignment)]
        read = {name for each in assignments for name, _ in names_read(each.value)}
        used = read | self._assigned.keys()
        unused = [(f"the tensor {name}", at) for name, at in self._declared.items() if name not in used]
        parameters = self._parameters
        unused += [
            (f"the parameter {name}", at) for name, at in parameters.declared.items() if name not in parameters.read
        ]
        for what, at in unused:
            if at.source == self._source:
                self._add(f"nothing reads {what}", at, "warning")


def _declared_tensors(program: Program) -> dict[str, Tensor]:
    """The inputs whose shapes the text tells."""
    found = {each.tensor.name: each.tensor for each in program.declared if each.tensor.name in program.inputs}
    for each in program.imported:
        bounds = [bound for _, bound in each.axes if bound is not None]
        if len(bounds) == len(each.axes):
            axes = tuple(Axis(name.lower(), bound) for (name, _), bound in zip(each.axes, bounds, strict=True))
            found[each.tensor] = Tensor(each.tensor, axes, each.dtype or "float64")
    return found


def _needed(einsum: EinSum, program: Program) -> set[str]:
    """Names of all that an EinSum reads, or of which it asks for a bound."""
    generated = {each.name: each.bound for each in program.generated}
    read = {operand.tensor for operand in einsum.operands}
    bounds = [*axis_bounds_of(einsum.join), *(generated[name] for name in read if name in generated)]
    return (read - generated.keys()) | {bound.tensor for bound in bounds if isinstance(bound, AxisBound)}
