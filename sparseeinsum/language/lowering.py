"""Language: syntax trees in, a Program of EinSums out: aggregates find their labels, nested ones become EinSums."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field

from sparseeinsum.errors import ParseError, SemanticsError
from sparseeinsum.language.eingraph import EinSum, Program, Reference
from sparseeinsum.language.scalar import AGGREGATES, FUNCTIONS, Call, Literal, Operand, Scalar
from sparseeinsum.language.syntax import (
    Assignment,
    Declaration,
    Expression,
    FunctionCall,
    Number,
    Position,
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
    declarations = [statement for statement in statements if isinstance(statement, Declaration)]
    if not assignments:
        raise ParseError(
            "the program assigns nothing; write a statement such as C[i, k] = sum(A[i, j] * B[j, k])", text, 1, 1
        )
    names = _Names(text, assignments)
    einsums: list[EinSum] = []
    for assignment in assignments:
        einsums.extend(_Statement(text, assignment, names).lower())
        names.assigned.add(assignment.target.tensor.lower())
    read = {operand.tensor for einsum in einsums for operand in einsum.operands}
    outputs = tuple(name for name in (a.target.tensor for a in assignments) if name not in read)
    declared = tuple(_declare(text, declaration) for declaration in declarations)
    return Program(tuple(einsums), declared, outputs, tuple(_layouts(assignments, outputs)))


def _declare(text: str, declaration: Declaration) -> Tensor:
    if declaration.fill:
        at = declaration.at
        raise ParseError(f"fill {declaration.fill:g} is not supported yet; only 0 is", text, at.line, at.column)
    axes = tuple(Axis(name.lower(), bound) for name, bound in declaration.axes)
    return Tensor(declaration.tensor, axes, declaration.dtype or "float64")


def _layouts(assignments: list[Assignment], outputs: tuple[str, ...]) -> Iterator[tuple[str, frozenset[str]]]:
    for assignment in assignments:
        promoted = frozenset(label.lower() for label in assignment.target.labels if _is_promoted(label))
        if promoted and assignment.target.tensor in outputs:
            yield assignment.target.tensor, promoted


def _is_promoted(label: str) -> bool:
    return label[0].isupper()


class _Names:
    """Names that the program assigns: each once, none before it is there, none apart from another by case alone."""

    def __init__(self, text: str, assignments: list[Assignment]) -> None:
        self.text = text
        self.assigned: set[str] = set()
        self.targets: dict[str, str] = {}
        for assignment in assignments:
            target = assignment.target
            known = self.targets.setdefault(target.tensor.lower(), target.tensor)
            first = next(other.target for other in assignments if other.target.tensor.lower() == known.lower())
            if first is not target:
                spelling = "" if known == target.tensor else f" (as {known}; case does not tell names apart)"
                problem = f"{target.tensor} is assigned twice{spelling}; give each result a name of its own"
                raise ParseError(problem, text, target.at.line, target.at.column)

    def check_read(self, reference: TensorReference) -> None:
        """Refuse a result that is read before the statement that assigns it, or under another spelling."""
        name = reference.tensor.lower()
        at = reference.at
        if name in self.targets and name not in self.assigned:
            problem = f"{reference.tensor} is read here, but assigned only later; put its statement first"
            raise ParseError(problem, self.text, at.line, at.column)
        if self.targets.get(name, reference.tensor) != reference.tensor:
            problem = f"{reference.tensor} is written {self.targets[name]} where it is assigned; use one spelling"
            raise ParseError(problem, self.text, at.line, at.column)

    def invent(self, target: str, aggregate: str) -> str:
        """A name for the value of an inner aggregate."""
        base = f"{target}_{aggregate}"
        number = 1
        while (base if number == 1 else f"{base}{number}").lower() in self.targets:
            number += 1
        name = base if number == 1 else f"{base}{number}"
        self.targets[name.lower()] = name
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
            self._add_aggregate(target.tensor, labels, value, frozenset(labels))
        else:
            body = self._replace_aggregates(value, frozenset(labels))
            self._add(target.tensor, labels, body, None, target.at)
        return self.einsums

    def _error(self, problem: str, at: Position) -> ParseError:
        return ParseError(problem, self.text, at.line, at.column)

    def _check_spelling(self) -> None:
        """A statement writes a label in one way: upper case promotes it everywhere."""
        spellings: dict[str, str] = {}
        for reference in (self.assignment.target, *_references(self.assignment.value)):
            for label in reference.labels:
                known = spellings.setdefault(label.lower(), label)
                if known != label:
                    problem = f"{known} and {label} are one label; write it one way in a statement"
                    raise self._error(problem, reference.at)
        self.promoted = frozenset(label.lower() for label in spellings.values() if _is_promoted(label))

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
        free = self._free_labels(call, outside)
        self._add_aggregate(name, free, call, outside)
        self.names.assigned.add(name.lower())
        return TensorReference(name, free, call.at)

    def _free_labels(self, call: FunctionCall, outside: frozenset[str]) -> tuple[str, ...]:
        """Labels that an inner aggregate leaves: all but those it binds."""
        bound = self._bound_labels(call, outside)
        return tuple(label for label in dict.fromkeys(_labels_in_order(call)) if label not in bound)

    def _bound_labels(self, call: FunctionCall, outside: frozenset[str]) -> frozenset[str]:
        self._check_aggregate(call)
        inside = _labels(call.arguments[0])
        if call.labels is None:
            bound = inside - outside
            if not bound:
                raise self._error(self._nothing_to_aggregate(call, inside), call.at)
            return bound
        bound = frozenset(_canonical(call.labels))
        for label in sorted(bound - inside):
            raise self._error(f"{call.name}[{label}] aggregates a label that its argument lacks", call.at)
        for label in sorted(bound & outside):
            raise self._error(f"{call.name}[{label}] aggregates a label that is also used outside it", call.at)
        return bound

    def _check_aggregate(self, call: FunctionCall) -> None:
        if len(call.arguments) != 1:
            raise self._error(f"the aggregate {call.name} takes one expression, not {len(call.arguments)}", call.at)

    def _nothing_to_aggregate(self, call: FunctionCall, inside: frozenset[str]) -> str:
        if not inside:
            return f"{call.name}(...) has no label to aggregate"
        example = sorted(inside)[0]
        return (
            f"{call.name}(...) has no label to aggregate: {', '.join(sorted(inside))} also stand outside it; "
            f"leave {call.name} out, or say what it aggregates, as in {call.name}[{example}](...)"
        )

    def _add_aggregate(self, name: str, labels: tuple[str, ...], call: FunctionCall, outside: frozenset[str]) -> None:
        self._bound_labels(call, outside)
        inside_of_it = outside | (frozenset(labels) & _labels(call.arguments[0]))
        body = self._replace_aggregates(call.arguments[0], inside_of_it)
        self._add(name, labels, body, call.name, call.at)

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
        missing = [label for label in sorted(inside) if label not in labels]
        if missing and aggregate is None:
            shown = ", ".join(missing)
            problem = (
                f"label{'s' if len(missing) > 1 else ''} {shown} must be aggregated, because the left side lacks "
                f"{'them' if len(missing) > 1 else 'it'}; write sum(...), max(...), min(...) or prod(...) around "
                "the expression"
            )
            raise self._error(problem, at)

    def _scalar(self, expression: Expression, references: list[Reference]) -> Scalar:
        """The expression over operands; every tensor it names goes to `references`, once for the same labels."""
        if isinstance(expression, Number):
            return Literal(expression.value)
        if isinstance(expression, TensorReference):
            self.names.check_read(expression)
            reference = Reference(expression.tensor, _canonical(expression.labels))
            if reference not in references:
                references.append(reference)
            return Operand(references.index(reference))
        self._check_function(expression)
        return Call(expression.name, tuple(self._scalar(argument, references) for argument in expression.arguments))

    def _check_function(self, call: FunctionCall) -> None:
        function = FUNCTIONS.get(call.name)
        if function is None:
            near = difflib.get_close_matches(call.name, (*FUNCTIONS, *AGGREGATES), n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(_function_names())}"
            raise self._error(f"there is no function {call.name!r}; {hint}", call.at)
        if call.labels is not None:
            raise self._error(f"{call.name} is no aggregate, so it takes no labels in brackets", call.at)
        if len(call.arguments) != function.operands:
            wanted = "one argument" if function.operands == 1 else f"{function.operands} arguments"
            raise self._error(f"{call.name} takes {wanted}, not {len(call.arguments)}", call.at)


def _function_names() -> list[str]:
    return [*AGGREGATES, *(name for name, function in FUNCTIONS.items() if not function.symbol)]


def _canonical(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(label.lower() for label in labels)


def _references(expression: Expression) -> Iterator[TensorReference]:
    if isinstance(expression, TensorReference):
        yield expression
    elif isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from _references(argument)


def _labels_in_order(expression: Expression) -> Iterator[str]:
    for reference in _references(expression):
        yield from _canonical(reference.labels)


def _labels(expression: Expression) -> frozenset[str]:
    """Labels that an expression uses outside the aggregates that bind them by name."""
    return frozenset(_labels_in_order(expression))
