"""Language: builds the syntax trees of statements from parse trees."""

from collections.abc import Sequence
from typing import Any, Protocol

from lark import Token, Tree
from lark.tree import Meta

from sparseeinsum.language.affine_indices import Limit
from sparseeinsum.language.expression_building import ExpressionBuilder, ReferenceIndices
from sparseeinsum.language.expression_checks import with_limited_depth, with_step
from sparseeinsum.language.index_syntax import limit
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parse_trees import with_meta
from sparseeinsum.language.syntax import (
    Assignment,
    Declaration,
    Definition,
    Import,
    IndexedReference,
    MatrixAssignment,
    MatrixDeclaration,
    NumberLiteral,
    Position,
    SourceText,
    StateDeclaration,
    Statement,
    TensorReference,
)
from sparseeinsum.language.syntax_text import write_expression
from sparseeinsum.operators import dtypes


class FileAccess(Protocol):
    """Finds the files that program text names."""

    def include(self, name: str, at: Position) -> Sequence[Statement]:
        """The statements of the file `name`."""

    def locate(self, relation: str) -> str:
        """The name of a table, or the absolute path of a data file."""


_Axes = tuple[tuple[str, int | None], ...]
_Origin = tuple[str, tuple[str, ...] | None, str | None]  # relation, columns of the indices, column of the values
_Properties = tuple[dtypes.Number | None, str | None, Position]  # fill, dtype, place of the statement


class StatementBuilder(ExpressionBuilder):
    """Converts parse trees of statements to syntax trees: a method for every rule of the grammar, with its name."""

    def __init__(
        self, source: SourceText, parameters: Parameters, files: FileAccess, hidden: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(source, (), parameters, hidden)
        self._files = files

    def statements(self, tree: Tree[Token]) -> Sequence[Statement]:
        """The syntax trees of a statement: none for a parameter, several for an include."""
        builder = self
        if tree.data == "definition":  # the parameters of a function hide those of the program
            hidden = frozenset(str(formal.children[0]) for formal in tree.find_data("formal"))
            builder = StatementBuilder(self._source, self._parameters, self._files, hidden)
        statements = builder._transformed(tree)
        assert isinstance(statements, tuple | list)
        return statements

    def axis(self, children: list[object]) -> tuple[str, object]:
        return str(children[0]), children[1]

    def axes(self, axes: list[object]) -> list[object]:
        return [axis for axis in axes if axis is not None]

    @with_meta
    def target(self, meta: Meta, children: tuple[Token, ReferenceIndices | None]) -> TensorReference:
        reference = self._referenced(*children, self.position(meta))
        if isinstance(reference, IndexedReference):
            problem = f"{write_expression(reference)} is on the left side, whose indices are labels"
            raise self._error(f"{problem}; shift the indices on the right side, as in Y[i] = A[i + 1]", reference.at)
        return reference

    @with_meta
    def name(self, meta: Meta, tokens: list[Token]) -> str:
        name = _unquoted(tokens[0])
        if not name:
            raise self._error("a name must have one character or more", self.position(meta))
        return name

    def index(self, columns: list[str]) -> tuple[str, ...]:
        return tuple(columns)

    def origin(self, children: list[object]) -> tuple[object, ...]:
        return tuple(children)

    @with_meta
    def declaration(self, meta: Meta, children: list[Any]) -> tuple[Statement]:
        name, axes, origin, fill, dtype = children
        at = self.position(meta)
        if not (fill is None or isinstance(fill, NumberLiteral)):
            raise self._error(f"the fill of {name} is not a number", at)
        properties = (None if fill is None else fill.value, None if dtype is None else str(dtype), at)
        if origin is not None:
            return (self._imported(str(name), tuple(axes), origin, properties),)
        for axis, bound in axes:
            if bound is None:
                problem = f"the axis {axis} of {name} has no bound; write one, as in {axis}: 10"
                raise self._error(f'{problem} (only tables need none, as in tensor {name}[...] from "edges")', at)
        return (Declaration(str(name), tuple(axes), *properties),)

    def _imported(self, name: str, axes: _Axes, origin: _Origin, properties: _Properties) -> Import:
        relation, index, value = origin
        if index is not None and len(index) != len(axes):
            problem = f"{name} has {len(axes)} axes, but {len(index)} index columns; name one for every axis, in order"
            raise self._error(problem, properties[2])
        columns = tuple(axis for axis, _ in axes) if index is None else index
        return Import(name, axes, self._files.locate(relation), columns, value, *properties)

    @with_meta
    def parameter(self, meta: Meta, children: list[Any]) -> tuple[Statement, ...]:
        name, value = children
        at = self.position(meta)
        if not (value is None or isinstance(value, NumberLiteral)):
            raise self._error(f"the value of the parameter {name} is not a number", at)
        self._parameters.declare(str(name), None if value is None else value.value, at, self._source)
        return ()

    @with_meta
    def include(self, meta: Meta, tokens: list[Token]) -> Sequence[Statement]:
        return self._files.include(_unquoted(tokens[0]), self.position(meta))

    def assignment(self, children: list[Any]) -> tuple[Statement]:
        target, value, limits = children
        assert isinstance(target, TensorReference)
        return (Assignment(target, with_step(with_limited_depth(value, self._source)), limits or ()),)

    def limits(self, limits: list[Limit]) -> tuple[Limit, ...]:
        return tuple(limits)

    def limit(self, children: list[Any]) -> Limit:
        index, symbol, bound = children
        return limit(index, str(symbol), bound, self._source)

    @with_meta
    def matrix_assignment(self, meta: Meta, children: list[Any]) -> tuple[Statement]:
        name, value = children
        value = with_limited_depth(value, self._source)
        return (MatrixAssignment(TensorReference(str(name), (), at=self.position(meta)), value),)

    @with_meta
    def definition(self, meta: Meta, children: list[Any]) -> tuple[Statement]:
        name, parameters, labels, body = children
        body = with_limited_depth(body, self._source)
        return (Definition(str(name), tuple(parameters), labels, body, self.position(meta)),)

    def formals(self, formals: list[Any]) -> list[Any]:
        return formals

    @with_meta
    def formal(self, meta: Meta, children: list[Any]) -> tuple[str, dtypes.Number | None]:
        name, default = children
        if not (default is None or isinstance(default, NumberLiteral)):
            raise self._error(f"the default of {name} is not a number", self.position(meta))
        return str(name), None if default is None else default.value

    @with_meta
    def labels(self, meta: Meta, children: list[Any]) -> tuple[str, ...]:
        reference = self._referenced("", children[0], self.position(meta))
        if isinstance(reference, IndexedReference) or reference.tiles:
            raise self._error("the result of a function has labels, without tiles", reference.at)
        return reference.labels

    @with_meta
    def kinds(self, meta: Meta, tokens: list[Token]) -> tuple[Statement, ...]:
        kind, *names = map(str, tokens)
        return tuple(MatrixDeclaration(name, kind, self.position(meta)) for name in names)

    @with_meta
    def state(self, meta: Meta, tokens: list[Token]) -> tuple[Statement, ...]:
        return tuple(StateDeclaration(str(name), self.position(meta)) for name in tokens)


def _unquoted(token: Token) -> str:
    return str(token[1:-1]) if token.type == "TEXT" else str(token)
