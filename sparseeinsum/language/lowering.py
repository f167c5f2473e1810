"""Language: syntax trees in, a Program of EinSums out: aggregates find their labels, nested ones become EinSums."""

import difflib
import math
from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass, field

from sparseeinsum.errors import ParseError, SemanticsError, ShapeError
from sparseeinsum.language.eingraph import DeclaredTensor, EinSum, Program, Reference
from sparseeinsum.language.scalar import AGGREGATES, FUNCTIONS, Call, Literal, Operand, Scalar
from sparseeinsum.language.syntax import (
    Assignment,
    Declaration,
    Expression,
    FunctionCall,
    Number,
    Position,
    Statement,
    TensorReference,
    parse,
)
from sparseeinsum.language.tensors import Axis, Tensor


def read_program(text: str) -> Program:
    """Read program text into EinSums over names; shapes come later, from the tensors.

    Raises:
        ParseError: The text cannot be read, or a label, a name or a function makes no sense where it stands.
        SemanticsError: An expression has more tensors than this version computes in one statement.
    """
    statements = parse(text)
    assignments = [statement for statement in statements if isinstance(statement, Assignment)]
    if not assignments:
        raise ParseError(
            "the program assigns nothing; write a statement such as C[i, k] = sum(A[i, j] * B[j, k])", text, 1, 1
        )
    names = _Names(text, statements)
    einsums: list[EinSum] = []
    for assignment in assignments:
        einsums.extend(_Statement(text, assignment, names).lower())
        names.assigned.add(assignment.target.tensor)
    read = {operand.tensor for einsum in einsums for operand in einsum.operands}
    outputs = tuple(name for name in (a.target.tensor for a in assignments) if name not in read)
    declared = tuple(_declare(text, statement) for statement in statements if isinstance(statement, Declaration))
    return Program(tuple(einsums), declared, outputs, tuple(_layouts(assignments, outputs)))


def _declare(text: str, declaration: Declaration) -> DeclaredTensor:
    at = declaration.at
    if declaration.fill:
        raise ParseError(f"fill {declaration.fill:g} is not supported yet; only 0 is", text, at.line, at.column)
    axes = tuple(Axis(name.lower(), bound) for name, bound in declaration.axes)
    try:
        tensor = Tensor(declaration.tensor, axes, declaration.dtype or "float64")
    except ShapeError as error:
        raise ParseError(str(error), text, at.line, at.column) from None
    return DeclaredTensor(tensor, declaration.dtype is not None)


def _layouts(assignments: list[Assignment], outputs: tuple[str, ...]) -> Iterator[tuple[str, frozenset[str]]]:
    for assignment in assignments:
        promoted = frozenset(label.lower() for label in assignment.target.labels if _is_promoted(label))
        if promoted and assignment.target.tensor in outputs:
            yield assignment.target.tensor, promoted


def _is_promoted(label: str) -> bool:
    return label[0].isupper()


class _Names:
    """Names in the program: each assigned once, none read before that, none apart from another by case alone."""

    def __init__(self, text: str, statements: tuple[Statement, ...]) -> None:
        self.text = text
        self.spellings: dict[str, str] = {}
        self.targets: dict[str, TensorReference] = {}
        self.assigned: set[str] = set()
        declared: set[str] = set()
        for statement in statements:
            if isinstance(statement, Declaration):
                self._check_spelling(statement.tensor, statement.at)
                if statement.tensor in declared:
                    raise self._error(f"{statement.tensor} is declared twice; declare a tensor once", statement.at)
                declared.add(statement.tensor)
                continue
            for reference in (statement.target, *_references(statement.value)):
                self._check_spelling(reference.tensor, reference.at)
            target = statement.target
            if self.targets.setdefault(target.tensor, target) is not target:
                raise self._error(f"{target.tensor} is assigned twice; give each result a name of its own", target.at)

    def _error(self, problem: str, at: Position) -> ParseError:
        return ParseError(problem, self.text, at.line, at.column)

    def _check_spelling(self, name: str, at: Position) -> None:
        known = self.spellings.setdefault(name.lower(), name)
        if known != name:
            problem = f"{known} and {name} are one name, because case does not tell names apart; write it one way"
            raise self._error(problem, at)

    def check_read(self, reference: TensorReference, target: str) -> None:
        """Refuse a result that is read before it is there, by the statement of `target`."""
        name = reference.tensor
        if name not in self.targets or name in self.assigned:
            return
        if name == target:
            problem = f"{name} is read by the statement that assigns it; give the result a name of its own"
        else:
            problem = f"{name} is read here, but assigned only later; put its statement first"
        raise self._error(problem, reference.at)

    def invent(self, target: str, aggregate: str) -> str:
        """A name for the value of an inner aggregate."""
        name = base = f"{target}_{aggregate}"
        number = 1
        while name.lower() in self.spellings:
            number += 1
            name = f"{base}{number}"
        self.spellings[name.lower()] = name
        return name


@dataclass
class _Statement:
    """Lowers one assignment: innermost aggregates first, each to an EinSum of its own."""

    text: str
    assignment: Assignment
    names: _Names
    einsums: list[EinSum] = field(default_factory=list)

    def lower(self) -> list[EinSum]:
        """The statement's EinSums, in order; the last one assigns its target."""
        self._check_spelling()
        target, value = self.assignment.target, self.assignment.value
        labels = _canonical(target.labels)
        if len(set(labels)) < len(labels):
            raise self._error(f"a label stands twice on the left side of {target.tensor}", target.at)
        if isinstance(value, FunctionCall) and self._is_aggregate(value):
            body, bound = self._read_aggregate(value, frozenset(labels))
            self._check_named(value, _labels(body) - bound - frozenset(labels))
            self._add(target.tensor, labels, body, value.name, value.at)
        else:
            body = self._replace_aggregates(value, frozenset(labels))
            self._add(target.tensor, labels, body, None, target.at)
        return self.einsums

    def _error(self, problem: str, at: Position) -> ParseError:
        return ParseError(problem, self.text, at.line, at.column)

    def _check_spelling(self) -> None:
        """A statement writes a label in one way: upper case promotes it everywhere."""
        spellings: dict[str, str] = {}
        for label, at in (*_written_labels(self.assignment.target), *_written_labels(self.assignment.value)):
            known = spellings.setdefault(label.lower(), label)
            if known != label:
                raise self._error(f"{known} and {label} are one label; write it one way in a statement", at)
        self.promoted = frozenset(label.lower() for label in spellings.values() if _is_promoted(label))

    def _check_named(self, call: FunctionCall, missing: frozenset[str]) -> None:
        """An aggregate that names its labels, and whose value is the whole result, must name all of them."""
        if missing:
            needed = ", ".join(sorted(missing | frozenset(_canonical(call.labels or ()))))
            raise self._error(f"{_must_aggregate(missing)}; write {call.name}[{needed}](...)", call.at)

    def _is_aggregate(self, call: FunctionCall) -> bool:
        """Min and max of two arguments are scalar functions, of one argument they aggregate."""
        if call.name not in AGGREGATES:
            return False
        return call.labels is not None or len(call.arguments) == 1 or call.name not in FUNCTIONS

    def _replace_aggregates(self, expression: Expression, outside: frozenset[str]) -> Expression:
        """The expression with every aggregate computed by an EinSum before; `outside`: labels used around it."""
        if not isinstance(expression, FunctionCall):
            return expression
        if self._is_aggregate(expression):
            return self._name_aggregate(expression, outside)
        arguments = []
        for position, argument in enumerate(expression.arguments):
            others = (*expression.arguments[:position], *expression.arguments[position + 1 :])
            beside = frozenset().union(*(_labels(other) for other in others)) if others else frozenset()
            arguments.append(self._replace_aggregates(argument, outside | beside))
        return FunctionCall(expression.name, expression.labels, tuple(arguments), expression.at)

    def _name_aggregate(self, call: FunctionCall, outside: frozenset[str]) -> TensorReference:
        name = self.names.invent(self.assignment.target.tensor, call.name)
        body, bound = self._read_aggregate(call, outside)
        free = tuple(label for label in dict.fromkeys(_free_labels(body)) if label not in bound)
        self._add(name, free, body, call.name, call.at)
        return TensorReference(name, free, call.at)

    def _read_aggregate(self, call: FunctionCall, outside: frozenset[str]) -> tuple[Expression, frozenset[str]]:
        """What an aggregate folds, its inner aggregates computed before, and the labels that it binds.

        Without names in brackets those are the labels that appear in it alone; inner aggregates take theirs first.
        """
        if len(call.arguments) != 1:
            raise self._error(f"the aggregate {call.name} takes one expression, not {len(call.arguments)}", call.at)
        named = frozenset(_canonical(call.labels or ()))
        body = self._replace_aggregates(call.arguments[0], outside | named)
        inside = _labels(body)
        for label in sorted(named - inside):
            raise self._error(f"{call.name}[{label}] aggregates a label that its argument lacks", call.at)
        for label in sorted(named & outside):
            problem = f"{call.name}[{label}] aggregates a label that is also used outside it"
            raise self._error(f"{problem}; rename it inside, or name it in the aggregate there, too", call.at)
        bound = named or inside - outside
        if not bound:
            raise self._error(self._nothing_to_aggregate(call, outside), call.at)
        return body, bound

    def _nothing_to_aggregate(self, call: FunctionCall, outside: frozenset[str]) -> str:
        problem = f"{call.name}(...) has no label to aggregate"
        written = _labels(call.arguments[0])
        if not written:
            return problem
        taken = sorted(written - outside)
        if taken:
            problem += f": {', '.join(taken)} {_verb('go', taken)} to an aggregate inside it"
            return f"{problem}; say what every aggregate takes, as in {call.name}[{taken[0]}](...)"
        problem += f": {', '.join(sorted(written))} also {_verb('stand', written)} outside it"
        candidates = sorted(written - frozenset(_canonical(self.assignment.target.labels)))
        if candidates:
            return f"{problem}; say what every aggregate takes, as in {call.name}[{candidates[0]}](...)"
        return f"{problem}; leave {call.name} out, or use another label inside"

    def _add(self, name: str, labels: tuple[str, ...], body: Expression, aggregate: str | None, at: Position) -> None:
        references: list[Reference] = []
        join = self._scalar(body, references)
        if not references:
            raise self._error("the right side names no tensor", at)
        if len(references) > 2:
            names = ", ".join(reference.tensor for reference in references)
            raise SemanticsError(
                f"the statement of {self.assignment.target.tensor} combines {len(references)} tensors ({names}) in one "
                "expression; this version combines two: give a part of it a statement of its own"
            )
        self._check_labels(labels, references, aggregate, at)
        output = Reference(name, labels)
        used = frozenset(labels).union(*(reference.labels for reference in references))
        self.einsums.append(EinSum(output, tuple(references), join, aggregate, self.promoted & used))

    def _check_labels(
        self, labels: tuple[str, ...], references: list[Reference], aggregate: str | None, at: Position
    ) -> None:
        inside = frozenset().union(*(reference.labels for reference in references))
        for label in labels:
            if label not in inside:
                problem = f"label {label} stands only on the left side; some tensor on the right must have it"
                raise self._error(problem, self.assignment.target.at)
        missing = inside - frozenset(labels)
        if missing and aggregate is None:
            hint = "write sum(...), max(...), min(...) or prod(...) around the expression"
            raise self._error(f"{_must_aggregate(missing)}; {hint}", at)

    def _scalar(self, expression: Expression, references: list[Reference]) -> Scalar:
        """The expression over operands; every tensor it names goes to `references`, once for the same labels."""
        if isinstance(expression, Number):
            if math.isinf(expression.value):
                raise self._error("the number is beyond what float64 holds", expression.at)
            return Literal(expression.value)
        if isinstance(expression, TensorReference):
            self.names.check_read(expression, self.assignment.target.tensor)
            reference = Reference(expression.tensor, _canonical(expression.labels))
            if reference not in references:
                references.append(reference)
            return Operand(references.index(reference))
        self._check_function(expression)
        return Call(expression.name, tuple(self._scalar(argument, references) for argument in expression.arguments))

    def _check_function(self, call: FunctionCall) -> None:
        function = FUNCTIONS.get(call.name)
        if function is None:
            near = difflib.get_close_matches(call.name.lower(), _function_names(), n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(_function_names())}"
            raise self._error(f"there is no function {call.name!r}; {hint}", call.at)
        if call.labels is not None:
            raise self._error(f"{call.name} is no aggregate, so it takes no labels in brackets", call.at)
        if len(call.arguments) != function.operands:
            wanted = "one argument" if function.operands == 1 else f"{function.operands} arguments"
            raise self._error(f"{call.name} takes {wanted}, not {len(call.arguments)}", call.at)


def _function_names() -> list[str]:
    functions = (name for name, function in FUNCTIONS.items() if not function.symbol)
    return list(dict.fromkeys((*AGGREGATES, *functions)))


def _must_aggregate(missing: Set[str]) -> str:
    nouns, pronoun = ("labels", "them") if len(missing) > 1 else ("label", "it")
    return f"{nouns} {', '.join(sorted(missing))} must be aggregated, because the left side lacks {pronoun}"


def _verb(verb: str, subjects: Collection[str]) -> str:
    """A verb in the third person, which for one subject ends in s."""
    return verb if len(subjects) > 1 else f"{verb}es" if verb.endswith("o") else f"{verb}s"


def _canonical(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(label.lower() for label in labels)


def _references(expression: Expression) -> Iterator[TensorReference]:
    if isinstance(expression, TensorReference):
        yield expression
    elif isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from _references(argument)


def _written_labels(expression: Expression) -> Iterator[tuple[str, Position]]:
    """Every label as written, those that aggregates name, too, and where its reference or aggregate stands."""
    if isinstance(expression, TensorReference | FunctionCall):
        yield from ((label, expression.at) for label in expression.labels or ())
    if isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from _written_labels(argument)


def _free_labels(expression: Expression) -> Iterator[str]:
    """Labels of all references, in order, without those that aggregates around them name."""
    if isinstance(expression, TensorReference):
        yield from _canonical(expression.labels)
    elif isinstance(expression, FunctionCall):
        named = _canonical(expression.labels or ())
        for argument in expression.arguments:
            yield from (label for label in _free_labels(argument) if label not in named)


def _labels(expression: Expression) -> frozenset[str]:
    return frozenset(_free_labels(expression))
