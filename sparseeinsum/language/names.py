"""Language: the names of a program: checks that each is assigned once and read later, and invents further names."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from sparseeinsum.errors import ParseError
from sparseeinsum.language.affine_indices import AffineIndex, Limit
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.generated import GeneratedTensor
from sparseeinsum.language.index_maps import IndexMap
from sparseeinsum.language.parse_trees import raise_error
from sparseeinsum.language.syntax import (
    AppliedFunction,
    Assignment,
    BoundExpression,
    Declaration,
    Differentiation,
    ExpressionTree,
    FunctionCall,
    Import,
    IndexedReference,
    LabelledStatement,
    MatrixName,
    Position,
    RangeExpression,
    SourceText,
    TensorReference,
)
from sparseeinsum.language.unused_names import unused_name
from sparseeinsum.operators.expressions import AxisBound


class ProgramNames:
    """The names of a program. No two differ by case alone.

    Attributes:
        declared: Declarations by name.
        imported: Imports of tables by name.
        assigned: The results whose statements were lowered so far.
        generated: Generated tensors, by what determines their values.
        values: References to intermediates with invented names, by what computes them.
    """

    def __init__(
        self,
        source: SourceText,
        statements: Sequence[LabelledStatement | Differentiation],
        parameters: Mapping[str, Position],
        report: Callable[[ParseError], None],
    ) -> None:
        self.declared: dict[str, Declaration] = {}
        self.imported: dict[str, Import] = {}
        self.assigned: set[str] = set()
        self.generated: dict[Hashable, GeneratedTensor | IndexMap] = {}
        self.values: dict[Hashable, TensorReference] = {}
        self._source = source
        self._parameters = {name.lower(): name for name in parameters}
        self._spellings: dict[str, str] = {}
        self._targets: dict[str, TensorReference] = {}
        for statement in statements:
            try:
                self._add(statement)
            except ParseError as error:
                report(error)
        for name in self.imported.keys() & self._targets.keys():
            relation = self.imported[name].relation
            problem = f"{name} is read from {relation}, and assigned here; give the result a name of its own"
            report(self.error(problem, self._targets[name].at))

    def error(self, problem: str, at: Position) -> ParseError:
        """A parse error that points to a place in the text."""
        return at.error(problem, self._source)

    def _add(self, statement: LabelledStatement | Differentiation) -> None:
        if isinstance(statement, Differentiation):
            self._add_target(TensorReference(statement.tensor, (), at=statement.at))
            return
        if not isinstance(statement, Assignment):
            self._declare(statement)
            return
        target = statement.target
        axes = ((limit.bound.tensor, target.at) for limit in statement.limits if isinstance(limit.bound, AxisBound))
        for name, at in (*names_read(statement.value), *axes):
            self._check_spelling(name, at)
        self._add_target(target)

    def _add_target(self, target: TensorReference) -> None:
        if self._targets.setdefault(target.tensor, target) is not target:
            raise self.error(f"{target.tensor} is assigned twice; give each result a name of its own", target.at)
        self._check_spelling(target.tensor, target.at)

    def _declare(self, statement: Declaration | Import) -> None:
        self._check_spelling(statement.tensor, statement.at)
        if statement.tensor in self.declared or statement.tensor in self.imported:
            raise self.error(f"{statement.tensor} is declared twice; declare a tensor once", statement.at)
        if isinstance(statement, Import):
            self.imported[statement.tensor] = statement
        else:
            self.declared[statement.tensor] = statement

    def _check_spelling(self, name: str, at: Position) -> None:
        earlier = self._spellings.setdefault(name.lower(), name)
        if earlier != name:
            problem = f"{earlier} and {name} are one name, because case does not tell names apart; write it one way"
            raise self.error(problem, at)
        parameter = self._parameters.get(name.lower())
        if parameter is not None:
            raise self.error(f"{parameter} is a parameter; give the tensor {name} another name", at)

    def check_read(self, name: str, at: Position, target: str) -> None:
        """Refuse a result `name` that the statement of `target` reads before it is assigned."""
        if name not in self._targets or name in self.assigned:
            return
        if name == target:
            problem = f"{name} is read by the statement that assigns it; give the result a name of its own"
        else:
            problem = f"{name} is read here, but assigned only later; put its statement first"
        raise self.error(problem, at)

    def invent(self, base: str) -> str:
        """A new name for an intermediate: `base`, with a number if that is taken."""
        name = unused_name(base, self.is_taken)
        self._spellings[name.lower()] = name
        return name

    def take(self, names: Iterable[str]) -> None:
        """Make names known, so that no intermediate gets one of them."""
        self._spellings.update((name.lower(), name) for name in names)

    def is_taken(self, name: str) -> bool:
        """Whether a tensor has the name, in upper or in lower case."""
        return name.lower() in self._spellings

    @property
    def generated_by_name(self) -> dict[str, GeneratedTensor | IndexMap]:
        """The generated tensors by name."""
        return {tensor.name: tensor for tensor in self.generated.values()}

    def generate(self, kind: str, label: str, bound: int | AxisBound) -> GeneratedTensor:
        """The generated tensor of a kind, label and bound; the same one for the same arguments."""
        key = (kind, label, bound)
        if key not in self.generated:
            self.generated[key] = GeneratedTensor(self.invent(f"{kind}_{label}"), kind, label, bound)
        vector = self.generated[key]
        assert isinstance(vector, GeneratedTensor)
        return vector

    def index_map(
        self,
        index: AffineIndex,
        axis: AxisBound,
        label: str,
        limits: tuple[Limit, ...],
        origin: AxisBound | None = None,
        reader: str = "",
    ) -> IndexMap:
        """The map of an index of an axis; the same one for the same arguments, but for `origin` and `reader`."""
        key = (index, axis, label, limits)
        if key not in self.generated:
            name = self.invent(f"{axis.tensor}_at")
            self.generated[key] = IndexMap(name, index, axis, label, limits, origin, reader)
        index_map = self.generated[key]
        assert isinstance(index_map, IndexMap)
        return index_map

    def is_parameter(self, name: str) -> bool:
        """Whether a parameter has that name, in upper or in lower case."""
        return name.lower() in self._parameters


def names_of_program(program: Program, further: Iterable[str] = ()) -> ProgramNames:
    """The names of a program that was lowered before, and further ones."""
    names = ProgramNames(SourceText(""), (), {}, raise_error)
    results = (einsum.output.tensor for einsum in program.einsums)
    declared = (declaration.tensor.name for declaration in program.declared)
    imported = (statement.tensor for statement in program.imported)
    names.take((*results, *program.inputs, *declared, *imported, *further))
    for tensor in program.generated:
        names.take((tensor.name,))
        match tensor:
            case GeneratedTensor(_, kind, label, bound):
                names.generated[kind, label, bound] = tensor
            case IndexMap(_, index, axis, label, limits):
                names.generated[index, axis, label, limits] = tensor
    return names


def names_read(expression: ExpressionTree | int | None) -> Iterator[tuple[str, Position]]:
    """The tensors that an expression reads, or whose bounds it asks for, with the places."""
    match expression:
        case TensorReference(name, _, _, at) | IndexedReference(name, _, _, at) | MatrixName(name, at):
            yield name, at
        case BoundExpression(name, axis, _, at) if axis is not None:
            yield name, at
        case RangeExpression(_, _, bound):
            yield from names_read(bound)
        case FunctionCall(_, _, arguments) | AppliedFunction(_, arguments):
            for argument in arguments:
                yield from names_read(argument)
