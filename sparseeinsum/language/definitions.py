"""Language: expands functions that programs define, as in `def layer(X, W)[i, j] = relu(sum(X[i, k] * W[k, j]))`.

Every call becomes a statement of its own, whose target has an invented name, so that the labels of a function meet no
others. Equal calls share one statement. The function gradient(loss, W) is defined already.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sparseeinsum.errors import ParseError
from sparseeinsum.language.function_registration import RESERVED
from sparseeinsum.language.names import names_read
from sparseeinsum.language.parse_trees import ParseErrorReport
from sparseeinsum.language.relabelling import relabelled
from sparseeinsum.language.syntax import (
    GRADIENT,
    AppliedFunction,
    Assignment,
    BoundExpression,
    ComputingStatement,
    Declaration,
    Definition,
    Differentiation,
    ExpressionTree,
    FunctionCall,
    Import,
    IndexedReference,
    MatrixAssignment,
    MatrixDeclaration,
    MatrixName,
    NumberLiteral,
    Position,
    RangeExpression,
    SourceText,
    TensorReference,
)
from sparseeinsum.language.syntax_text import write_expression
from sparseeinsum.language.unused_names import unused_name
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.presentation.spelling import did_you_mean


def without_definitions(
    statements: Sequence[ComputingStatement | Definition], source: SourceText, report: ParseErrorReport
) -> tuple[ComputingStatement, ...]:
    """The statements without definitions, and with the statements that calls of defined functions stand for.

    Args:
        statements: The statements in order.
        source: The text that errors show if a statement is from no text.
        report: Called with every error; if it does not raise, statements with errors are left out.

    Raises:
        ParseError: A definition or a call is wrong.
    """
    expansion = _Expansion(source, {name.lower() for statement in statements for name in _names(statement)})
    return tuple(expansion.expanded(statements, report))


def _names(statement: ComputingStatement | Definition) -> Iterator[str]:
    """The names of tensors that a statement has."""
    match statement:
        case Assignment(target, value):
            yield target.tensor
            yield from (name for name, _ in names_read(value))
        case Declaration() | Import() | MatrixDeclaration():
            yield statement.tensor


@dataclass
class _Expansion:
    """Expands the calls of a program.

    Attributes:
        source: The text that errors show if a statement is from no text.
        taken: The names of tensors in the program, in lower case.
        definitions: The functions that are defined so far, by name.
        results: The names of the tensors of calls, by the function and its arguments.
        added: The statements of the calls in the current statement.
        base: The name of the target of the current statement.
    """

    source: SourceText
    taken: set[str]
    definitions: dict[str, Definition] = field(default_factory=dict)
    results: dict[object, str] = field(default_factory=dict)
    added: list[ComputingStatement] = field(default_factory=list)
    base: str = ""

    def expanded(
        self, statements: Sequence[ComputingStatement | Definition], report: ParseErrorReport
    ) -> Iterator[ComputingStatement]:
        for statement in statements:
            try:
                if isinstance(statement, Definition):
                    self._define(statement)
                    continue
                if isinstance(statement, Assignment):
                    self.base, self.added = statement.target.tensor, []
                    last = self._assignment(statement)
                    yield from (*self.added, last)
                    continue
            except ParseError as error:
                report(error)
                continue
            yield statement

    def error(self, problem: str, at: Position) -> ParseError:
        """A parse error that points to a place in the text."""
        return at.error(problem, self.source)

    def _define(self, definition: Definition) -> None:
        name, names = definition.name, [parameter for parameter, _ in definition.parameters]
        if self.definitions.get(name, definition) != definition or name in FUNCTIONS or name in RESERVED:
            raise self.error(f"there is a function {name} already; give this one another name", definition.at)
        for parameter in names:
            if names.count(parameter) > 1:
                raise self.error(f"the function {name} has two parameters {parameter}; rename one", definition.at)
        for tensor, at in names_read(definition.body):
            if tensor not in names:
                problem = f"the function {name} reads {tensor}, which is none of its parameters"
                raise self.error(f"{problem}; add it to {name}({', '.join(names)})", at)
        for called in _applied(definition.body):
            if called.name != GRADIENT:
                self._definition_of(called)
        self.definitions[name] = definition

    def _assignment(self, statement: Assignment) -> Assignment:
        """The statement without calls of defined functions; a call that is the whole value assigns its target."""
        call = self._as_applied(statement.value)
        if call is not None and call.name != GRADIENT and not statement.limits:
            definition, target = self._definition_of(call), statement.target
            if isinstance(statement, MatrixAssignment):
                return self._assigned(target, call, definition)
            labels = definition.labels or ()
            indices = [index for index in call.indices if isinstance(index, str)]
            is_plain = not (target.tiles or call.tiles) and len(indices) == len(call.indices) == len(labels)
            if is_plain and sorted(indices) == sorted(set(target.labels)):
                label_of = dict(zip(labels, indices, strict=True))
                return replace(statement, value=relabelled(self._body(definition, call), label_of))
        return replace(statement, value=self._expand(statement.value))

    def _assigned(self, target: TensorReference, call: AppliedFunction, definition: Definition) -> Assignment:
        """The statement that assigns the result of a call to a target without labels."""
        value = self._body(definition, call)
        if definition.labels is None:
            return MatrixAssignment(target, value)
        return Assignment(replace(target, labels=definition.labels), value)

    def _check_rank(self, call: AppliedFunction, definition: Definition) -> None:
        labels = definition.labels
        if labels is not None and len(labels) != len(call.indices):
            problem = f"{call.name}(...) has {len(call.indices)} indices, but its result has {len(labels)} axes"
            raise self.error(f"{problem}: {', '.join(labels)}", call.at)

    def _as_applied(self, expression: ExpressionTree) -> AppliedFunction | None:
        """The call of a defined function that an expression is, or None."""
        match expression:
            case AppliedFunction():
                return expression
            case FunctionCall(name, None, arguments, at) if name in self.definitions:
                return AppliedFunction(name, arguments, (), at=at)
        return None

    def _definition_of(self, call: AppliedFunction) -> Definition:
        if call.name not in self.definitions:
            hint = did_you_mean(call.name, list(self.definitions))
            problem = f"no function {call.name} is defined before; {hint}" if self.definitions else _UNDEFINED
            raise self.error(problem.format(name=call.name), call.at)
        return self.definitions[call.name]

    def _expand(self, expression: ExpressionTree) -> ExpressionTree:
        """The expression with references to results in place of calls."""
        match expression:
            case AppliedFunction(name, _, indices, tiles, at) if name == GRADIENT:
                return _reference(self._gradient(expression), indices, tiles, at)
            case AppliedFunction(_, _, indices, tiles, at):
                definition = self._definition_of(expression)
                self._check_rank(expression, definition)
                return _reference(self._result(expression), indices, tiles, at)
            case FunctionCall(name, None, arguments, at) if name == GRADIENT:
                return MatrixName(self._gradient(AppliedFunction(name, arguments, (), at=at)), at)
            case FunctionCall(name, None, _, at) if name in self.definitions:
                call = self._as_applied(expression)
                assert call is not None
                return MatrixName(self._result(call), at)
            case FunctionCall(_, _, arguments):
                return replace(expression, arguments=tuple(map(self._expand, arguments)))
            case _:
                return expression

    def _result(self, call: AppliedFunction) -> str:
        """The name of the tensor that a call computes; its statement is added, unless there is one already."""
        definition = self._definition_of(call)
        arguments = tuple(self._arguments(call, definition).items())
        key = (definition.name, arguments)
        if key not in self.results:
            name = self._invent(f"{self.base}_{definition.name}")
            self.added.append(self._assigned(TensorReference(name, (), at=call.at), call, definition))
            self.results[key] = name
        return self.results[key]

    def _gradient(self, call: AppliedFunction) -> str:
        """The name of the gradient that a call computes; its statement is added, unless there is one already."""
        if len(call.arguments) != 2:
            problem = f"{GRADIENT} takes a scalar and a tensor, not {len(call.arguments)} arguments"
            raise self.error(f"{problem}; write {GRADIENT}(loss, W)[i, j]", call.at)
        of, by = (self.tensor_of(self._expand(argument), call) for argument in call.arguments)
        if (GRADIENT, of, by) not in self.results:
            name = self._invent(f"d_{of}_d_{by}")
            self.added.append(Differentiation(name, of, by, call.at))
            self.results[GRADIENT, of, by] = name
        return self.results[GRADIENT, of, by]

    def _arguments(self, call: AppliedFunction, definition: Definition) -> dict[str, ExpressionTree]:
        """The arguments of a call by the names of parameters, without calls of defined functions."""
        parameters = definition.parameters
        least = sum(default is None for _, default in parameters)
        if not least <= len(call.arguments) <= len(parameters):
            count = str(least) if least == len(parameters) else f"{least} to {len(parameters)}"
            names = ", ".join(name for name, _ in parameters)
            problem = f"{call.name}({names}) takes {count} arguments, not {len(call.arguments)}"
            raise self.error(problem, call.at)
        defaults = [NumberLiteral(value, call.at) for _, value in parameters if value is not None]
        missing = len(parameters) - len(call.arguments)
        values = (*map(self._expand, call.arguments), *(defaults[-missing:] if missing else ()))
        return {name: argument for (name, _), argument in zip(parameters, values, strict=True)}

    def _body(self, definition: Definition, call: AppliedFunction) -> ExpressionTree:
        """The body of a function with the arguments of a call, without calls of defined functions."""
        arguments = self._arguments(call, definition)
        substitution = _Substitution(self, call, arguments, definition.labels is not None)
        return self._expand(substitution.of(definition.body))

    def tensor_of(self, argument: ExpressionTree, call: AppliedFunction) -> str:
        """The name of the tensor that an argument is; a statement of linear algebra computes an expression."""
        match argument:
            case MatrixName(name) | TensorReference(name, ()):
                return name
            case NumberLiteral():
                problem = f"{call.name} reads an argument as a tensor with labels, but it is {argument.value}"
                raise self.error(problem, argument.at)
            case TensorReference() | IndexedReference():
                problem = f"{write_expression(argument)} is an argument of {call.name}; give it without labels"
                raise self.error(problem, argument.at)
        if argument not in self.results:
            name = self._invent(f"{self.base}_{call.name}_argument")
            self.added.append(MatrixAssignment(TensorReference(name, (), at=call.at), argument))
            self.results[argument] = name
        return self.results[argument]

    def _invent(self, base: str) -> str:
        name = unused_name(base, lambda name: name.lower() in self.taken)
        self.taken.add(name.lower())
        return name


_UNDEFINED = "no function {name} is defined before; write def {name}(X)[i, j] = ..., or include a file that does"


@dataclass(frozen=True, slots=True)
class _Substitution:
    """Puts arguments in place of the parameters of a function.

    Attributes:
        expansion: Names tensors of expressions.
        call: The call.
        arguments: The arguments by the names of parameters.
        has_labels: Whether the body has labels.
    """

    expansion: _Expansion
    call: AppliedFunction
    arguments: dict[str, ExpressionTree]
    has_labels: bool

    def of(self, expression: ExpressionTree) -> ExpressionTree:
        """The expression, in which parameters are read as its labels say."""
        match expression:
            case TensorReference(name) | IndexedReference(name):
                return replace(expression, tensor=self._tensor(name))
            case BoundExpression(name, int()):
                return replace(expression, name=self._tensor(name))
            case RangeExpression(_, _, BoundExpression(name, int()) as bound):
                return replace(expression, bound=replace(bound, name=self._tensor(name)))
            case MatrixName(name):
                return self._scalar(self.arguments[name]) if self.has_labels else self.arguments[name]
            case AppliedFunction(_, arguments):
                return replace(expression, arguments=tuple(map(self._without_labels, arguments)))
            case FunctionCall(name, None, arguments) if name in self.expansion.definitions:
                return replace(expression, arguments=tuple(map(self._without_labels, arguments)))
            case FunctionCall(_, _, arguments):
                return replace(expression, arguments=tuple(map(self.of, arguments)))
            case _:
                return expression

    def _without_labels(self, expression: ExpressionTree) -> ExpressionTree:
        """An argument of a call in the body, with arguments in place of parameters."""
        return replace(self, has_labels=False).of(expression)

    def _tensor(self, name: str) -> str:
        return self.expansion.tensor_of(self.arguments[name], self.call)

    def _scalar(self, argument: ExpressionTree) -> ExpressionTree:
        """An argument that a statement with labels reads as a number: its tensors are scalars."""
        match argument:
            case MatrixName(name, at):
                return TensorReference(name, (), at=at)
            case FunctionCall(_, None, arguments):
                return replace(argument, arguments=tuple(map(self._scalar, arguments)))
            case _:
                return argument


def _reference(
    name: str, indices: tuple[str | object, ...], tiles: tuple[tuple[str, int], ...], at: Position
) -> ExpressionTree:
    labels = tuple(index for index in indices if isinstance(index, str))
    if len(labels) == len(indices):
        return TensorReference(name, labels, tiles, at)
    return IndexedReference(name, indices, tiles, at)  # type: ignore[arg-type]  # by grammar


def _applied(expression: ExpressionTree) -> Iterator[AppliedFunction]:
    """The calls with indices in an expression."""
    if isinstance(expression, AppliedFunction):
        yield expression
    if isinstance(expression, FunctionCall | AppliedFunction):
        for argument in expression.arguments:
            yield from _applied(argument)
