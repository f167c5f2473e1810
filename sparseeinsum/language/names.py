"""Language: the names of a program: each assigned once, none read before that, and names for what has none."""

from collections.abc import Hashable, Iterator

from sparseeinsum.errors import ParseError
from sparseeinsum.language.generated import GeneratedTensor
from sparseeinsum.language.scalar import AxisBound
from sparseeinsum.language.syntax import (
    BoundOf,
    Declaration,
    Expression,
    FunctionCall,
    Position,
    RangeOf,
    Statement,
    TensorReference,
)


class Names:
    """Names in a program; none differs from another by case alone.

    Attributes:
        declared: Declarations by name.
        assigned: Results whose statements were read.
        generated: Tensors that nobody stores, by what they are.
        values: References to values that have an invented name, by what computes them.
    """

    def __init__(self, text: str, statements: tuple[Statement, ...]) -> None:
        self.text = text
        self.declared: dict[str, Declaration] = {}
        self.assigned: set[str] = set()
        self.generated: dict[tuple[str, str, int | AxisBound], GeneratedTensor] = {}
        self.values: dict[Hashable, TensorReference] = {}
        self._spellings: dict[str, str] = {}
        self._targets: dict[str, TensorReference] = {}
        for statement in statements:
            if isinstance(statement, Declaration):
                self._declare(statement)
                continue
            target = statement.target
            for name, at in ((target.tensor, target.at), *_read(statement.value)):
                self._check_spelling(name, at)
            if self._targets.setdefault(target.tensor, target) is not target:
                raise self.error(f"{target.tensor} is assigned twice; give each result a name of its own", target.at)

    def error(self, problem: str, at: Position) -> ParseError:
        """An error that points into the text."""
        return ParseError(problem, self.text, at.line, at.column)

    def _declare(self, statement: Declaration) -> None:
        self._check_spelling(statement.tensor, statement.at)
        if self.declared.setdefault(statement.tensor, statement) is not statement:
            raise self.error(f"{statement.tensor} is declared twice; declare a tensor once", statement.at)

    def _check_spelling(self, name: str, at: Position) -> None:
        known = self._spellings.setdefault(name.lower(), name)
        if known != name:
            problem = f"{known} and {name} are one name, because case does not tell names apart; write it one way"
            raise self.error(problem, at)

    def check_read(self, name: str, at: Position, target: str) -> None:
        """Refuse a result that is read before it is there, by the statement of `target`."""
        if name not in self._targets or name in self.assigned:
            return
        if name == target:
            problem = f"{name} is read by the statement that assigns it; give the result a name of its own"
        else:
            problem = f"{name} is read here, but assigned only later; put its statement first"
        raise self.error(problem, at)

    def invent(self, base: str) -> str:
        """A name for something that the program does not name."""
        name, number = base, 1
        while name.lower() in self._spellings:
            number += 1
            name = f"{base}{number}"
        self._spellings[name.lower()] = name
        return name

    def generate(self, kind: str, label: str, bound: int | AxisBound) -> GeneratedTensor:
        """The generated tensor of a kind over a label of some bound."""
        key = (kind, label, bound)
        if key not in self.generated:
            self.generated[key] = GeneratedTensor(self.invent(f"{kind}_{label}"), kind, label, bound)
        return self.generated[key]


def _read(expression: Expression | int | None) -> Iterator[tuple[str, Position]]:
    """Tensors that an expression reads, or asks for the bound of an axis."""
    match expression:
        case TensorReference(name, _, _, at):
            yield name, at
        case BoundOf(name, axis, _, at) if axis is not None:
            yield name, at
        case RangeOf(_, _, bound):
            yield from _read(bound)
        case FunctionCall(_, _, arguments):
            for argument in arguments:
                yield from _read(argument)
