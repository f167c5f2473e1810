"""Language: lowers an assignment to EinSums: finds the labels of aggregates, and computes nested aggregates first."""

from dataclasses import dataclass, field, replace
from functools import reduce

from sparseeinsum.language.aggregate_calls import (
    check_arguments,
    check_one_label,
    goes_along,
    must_aggregate,
    needs_labels,
    no_label_problem,
    wrong_labels_problem,
)
from sparseeinsum.language.eingraph import EinSum, Promoted, Reference
from sparseeinsum.language.joins import JoinLowering, check_name
from sparseeinsum.language.label_bounds import resolve_bounds
from sparseeinsum.language.macros import MACROS, MacroCall, one_hot
from sparseeinsum.language.names import ProgramNames
from sparseeinsum.language.random_functions import RANDOM_FUNCTIONS, expand_random
from sparseeinsum.language.selections import select_indices
from sparseeinsum.language.syntax import (
    Assignment,
    ExpressionTree,
    FunctionCall,
    NumberLiteral,
    Position,
    RangeExpression,
    TensorReference,
    calls,
    free_labels,
    is_aggregate,
    is_promoted,
    labels_of,
    lowercase_labels,
    references,
    written_labels,
)
from sparseeinsum.language.tensors import write_label
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES


def lower_assignment(assignment: Assignment, names: ProgramNames) -> list[EinSum]:
    """The EinSums of an assignment, in order; the last one assigns its target.

    Args:
        assignment: The assignment; all tensors in it have labels.
        names: The names of the program; invented names of intermediates are added.

    Raises:
        ParseError: A label, a name or a function is wrong.
    """
    return _AssignmentLowering(assignment, names).lower()


@dataclass
class _AssignmentLowering:
    """Lowers one assignment: innermost aggregates first, each to an EinSum of its own."""

    assignment: Assignment
    names: ProgramNames
    einsums: list[EinSum] = field(default_factory=list)

    def lower(self) -> list[EinSum]:
        """The EinSums of the assignment, in order; the last one assigns its target."""
        self._check_spelling()
        target = self.assignment.target
        labels = lowercase_labels(target.labels)
        if len(set(labels)) < len(labels):
            raise self.names.error(f"a label occurs twice on the left side of {target.tensor}", target.at)
        written = replace(self.assignment, value=self._without_one_hot(self.assignment.value))
        selected, self.einsums = select_indices(written, self.names, self._promoted_among)
        if selected is None:
            return self.einsums
        written = replace(written, value=selected)
        value = resolve_bounds(written, self.names.declared.get(target.tensor), self.names.error)
        if self._add_directly(value, labels):
            return self.einsums
        body, aggregate, at = self._lower_value(value, frozenset(labels))
        present = labels_of(body)
        missing = tuple(label for label in labels if label not in present)
        if missing:
            body, aggregate = self._broadcast(missing, body, aggregate, at), None
        self._add(target.tensor, labels, body, aggregate, at)
        return self.einsums

    def _add_directly(self, value: ExpressionTree, labels: tuple[str, ...]) -> bool:
        """Add the EinSum of a value that is a scan, a pick or a user's aggregate with the target's labels.

        Returns:
            Whether the value is one, so that the target needs no further EinSum.
        """
        if not isinstance(value, FunctionCall) or not labels_of(value) >= frozenset(labels):
            return False
        name, at = self.assignment.target.tensor, value.at
        if goes_along(value):
            body, along = self._lower_scan(value, *self._lower_aggregate(value, frozenset(labels)))
            has_target_labels = labels_of(body) - {along} == frozenset(labels) - {along}
            if has_target_labels:
                self._add(name, labels, body, value.name, at, along)
            return has_target_labels
        if value.name in USER_AGGREGATES:
            body, aggregated, state = self._lower_user_aggregate(value, frozenset(labels))
            if labels_of(body) - aggregated == frozenset(labels) - {state} and state in (None, *labels[-1:]):
                self._add(name, labels, body, value.name, at, state=state)
                return True
        return False

    def _lower_value(
        self, value: ExpressionTree, outside: frozenset[str]
    ) -> tuple[ExpressionTree, str | None, Position]:
        """The body and the aggregate of the target's EinSum; aggregates inside the body are computed before.

        Args:
            value: The right side of the assignment.
            outside: The labels of the target.
        """
        needs_einsum = isinstance(value, FunctionCall) and (goes_along(value) or value.name in USER_AGGREGATES)
        if not isinstance(value, FunctionCall) or needs_einsum or not needs_labels(value):
            return self._replace_aggregates(value, outside), None, self.assignment.target.at
        body, labels = self._lower_aggregate(value, outside)
        if is_aggregate(value):
            self._check_names_all(value, labels_of(body) - labels - outside)
        if value.name in MACROS:
            return self._expand_macro(value, body, labels), None, value.at
        return body, value.name, value.at

    def _target_labels(self) -> frozenset[str]:
        return frozenset(lowercase_labels(self.assignment.target.labels))

    def _check_spelling(self) -> None:
        """Refuse a label that a statement writes in upper and in lower case; collect those that it promotes."""
        spellings: dict[str, str] = {}
        for label, at in (*written_labels(self.assignment.target), *written_labels(self.assignment.value)):
            earlier = spellings.setdefault(label.lower(), label)
            if earlier != label:
                raise self.names.error(f"{earlier} and {label} are one label; write it one way in a statement", at)
        promoted = [label.lower() for label in spellings.values() if is_promoted(label)]
        self.promoted = frozenset((dict.fromkeys(promoted, 1) | self._tiles()).items())

    def _tiles(self) -> dict[str, int]:
        """The tiles that references give to labels; refuses a label with two tiles."""
        tile_of: dict[str, int] = {}
        for reference in (self.assignment.target, *references(self.assignment.value)):
            tiles = dict(reference.tiles)
            for label in lowercase_labels(tuple(index for index in reference.indices if isinstance(index, str))):
                tile = tiles.get(label, 1)
                if tile_of.setdefault(label, tile) != tile:
                    spellings_shown = " and ".join(write_label(label, {label: size}) for size in (tile_of[label], tile))
                    problem = f"{spellings_shown} are one label; give it one tile in a statement"
                    raise self.names.error(problem, reference.at)
        return {label: tile for label, tile in tile_of.items() if tile > 1}

    def _check_names_all(self, call: FunctionCall, missing: frozenset[str]) -> None:
        """Refuse an outermost aggregate whose brackets leave out labels, `missing`, that the target lacks."""
        if missing:
            needed = ", ".join(sorted(missing | frozenset(lowercase_labels(call.labels or ()))))
            raise self.names.error(f"{must_aggregate(missing)}; write {call.name}[{needed}](...)", call.at)

    def _without_one_hot(self, expression: ExpressionTree) -> ExpressionTree:
        """The expression with comparisons in place of calls of one_hot."""
        if not isinstance(expression, FunctionCall):
            return expression
        call = replace(expression, arguments=tuple(map(self._without_one_hot, expression.arguments)))
        if call.name != "one_hot":
            return call
        if len(call.labels or ()) != 1 or len(call.arguments) != 1:
            raise self.names.error("one_hot takes one new label and one expression, as in one_hot[k](X[i])", call.at)
        (label,) = call.labels or ()
        if label.lower() in labels_of(call.arguments[0]):
            problem = f"one_hot[{label}] adds a label that its argument has already; use another one"
            raise self.names.error(problem, call.at)
        return one_hot(label, call.arguments[0], call.at)

    def _replace_aggregates(self, expression: ExpressionTree, outside: frozenset[str]) -> ExpressionTree:
        """The expression with intermediates in place of aggregates; `outside` are the labels around it."""
        if not any(needs_labels(call) or call.name in RANDOM_FUNCTIONS for call in calls(expression)):
            for call in calls(expression):
                check_name(call, self.names)
            return expression
        assert isinstance(expression, FunctionCall)
        if needs_labels(expression):
            return self._name_aggregate(expression, outside)
        if expression.name in RANDOM_FUNCTIONS:
            return self._expand_random(self._without_aggregates(expression, outside))
        check_name(expression, self.names)
        return self._without_aggregates(expression, outside)

    def _without_aggregates(self, expression: FunctionCall, outside: frozenset[str]) -> FunctionCall:
        """The call with intermediates in place of aggregates in its arguments."""
        arguments = list(expression.arguments)
        for position, argument in enumerate(arguments):
            if isinstance(argument, FunctionCall):
                others = (*expression.arguments[:position], *expression.arguments[position + 1 :])
                arguments[position] = self._replace_aggregates(argument, outside.union(*map(labels_of, others)))
        return replace(expression, arguments=tuple(arguments))

    def _name_aggregate(self, call: FunctionCall, outside: frozenset[str]) -> TensorReference:
        """A reference to an intermediate that an EinSum for an aggregate, a scan or a macro computes."""
        if call.name in USER_AGGREGATES:
            body, aggregated, state = self._lower_user_aggregate(call, outside)
            free = tuple(label for label in dict.fromkeys(free_labels(body)) if label not in aggregated)
            free = free if state is None else (*free, state)
            return self._name_value(call.name, free, body, call.name, call.at, state=state)
        body, labels = self._lower_aggregate(call, outside)
        aggregated = labels if is_aggregate(call) else frozenset()
        free = tuple(label for label in dict.fromkeys(free_labels(body)) if label not in aggregated)
        if goes_along(call):
            value, along = self._lower_scan(call, body, labels)
            return self._name_value(call.name, free, value, call.name, call.at, along)
        if call.name in MACROS:
            return self._name_value(call.name, free, self._expand_macro(call, body, labels), None, call.at)
        return self._name_value(call.name, free, body, call.name, call.at)

    def _lower_user_aggregate(
        self, call: FunctionCall, outside: frozenset[str]
    ) -> tuple[ExpressionTree, frozenset[str], str | None]:
        """The body of a user's aggregate, the labels that it aggregates, and the label of its state, if any."""
        record = USER_AGGREGATES[call.name]
        if len(call.arguments) != record.arguments:
            takes = "one expression" if record.arguments == 1 else "two expressions"
            raise self.names.error(f"the aggregate {call.name} takes {takes}, not {len(call.arguments)}", call.at)
        named = lowercase_labels(call.labels or ())
        arguments = [self._replace_aggregates(argument, outside | frozenset(named)) for argument in call.arguments]
        inside = frozenset().union(*map(labels_of, arguments))
        new = tuple(label for label in named if label not in inside)
        if len(new) != (record.numbers > 1):
            raise self.names.error(wrong_labels_problem(record, named, inside), call.at)
        aggregated = frozenset(named).difference(new) or inside - outside
        if not aggregated:
            raise self.names.error(no_label_problem(call, outside, self._target_labels()), call.at)
        for label in sorted(aggregated & outside):
            problem = f"{call.name}[{label}] aggregates a label that is also used outside it"
            raise self.names.error(f"{problem}; rename it inside", call.at)
        for argument in arguments:
            if not (any(references(argument)) or labels_of(argument)):
                problem = f"an argument of {call.name} has no tensor"
                raise self.names.error(f"{problem}; multiply ones(j) by a number, as in 3 * ones(j)", call.at)
        if new and new[0] in dict(self.promoted):
            problem = f"{call.name} keeps {new[0]} inside arrays, so {new[0]} cannot be a key column"
            raise self.names.error(f"{problem}; write it in lower case and without a tile", call.at)
        tensors = [self._as_reference(argument, call.at) for argument in arguments]
        body = tensors[0] if len(tensors) == 1 else FunctionCall(record.pair, None, tuple(tensors), call.at)
        return body, aggregated, new[0] if new else None

    def _as_reference(self, expression: ExpressionTree, at: Position) -> ExpressionTree:
        """A reference to the value of an expression: the expression itself if it is one, or else an intermediate."""
        if isinstance(expression, TensorReference | RangeExpression):
            return expression
        return self._name_value("value", tuple(dict.fromkeys(free_labels(expression))), expression, None, at)

    def _lower_scan(
        self, call: FunctionCall, body: ExpressionTree, labels: frozenset[str]
    ) -> tuple[ExpressionTree, str]:
        """The operand of a scan or a pick, and the label along which it goes."""
        check_one_label(call, body, labels, self.names.error)
        (along,) = labels
        if along in dict(self.promoted):
            problem = f"{call.name} goes along {along} inside arrays, so {along} cannot be a key column"
            raise self.names.error(f"{problem}; write it in lower case and without a tile", call.at)
        return self._as_reference(body, call.at), along

    def _expand_macro(self, call: FunctionCall, body: ExpressionTree, labels: frozenset[str]) -> ExpressionTree:
        """The expression that a macro stands for; its intermediates are computed before."""
        macro = MACROS[call.name]
        if macro.takes_one_label:
            check_one_label(call, body, labels, self.names.error)
        in_order = tuple(label for label in dict.fromkeys(free_labels(body)) if label in labels)

        def name_value(
            suffix: str, labels: tuple[str, ...], expression: ExpressionTree, aggregate: str | None
        ) -> TensorReference:
            return self._name_value(suffix, labels, expression, aggregate, call.at)

        return macro.expand(MacroCall(body, in_order, call.arguments[1:], name_value))

    def _expand_random(self, call: FunctionCall) -> ExpressionTree:
        """The expression that a random number stands for; its intermediates are computed before."""

        def name_value(labels: tuple[str, ...], expression: ExpressionTree) -> TensorReference:
            return self._name_value("key", labels, expression, None, call.at)

        return expand_random(call, name_value, self.names.error)

    def _name_value(
        self,
        suffix: str,
        labels: tuple[str, ...],
        body: ExpressionTree,
        aggregate: str | None,
        at: Position,
        along: str | None = None,
        state: str | None = None,
    ) -> TensorReference:
        """A reference to an intermediate, whose EinSum is added unless the program has an equal one already."""
        promoted = self._promoted_among(labels_of(body) | frozenset(labels))
        key = (labels, body, aggregate, along, promoted)
        if key not in self.names.values:
            name = self.names.invent(f"{self.assignment.target.tensor}_{suffix}")
            self._add(name, labels, body, aggregate, at, along, state)
            self.names.values[key] = TensorReference(name, labels, at=at)
        return replace(self.names.values[key], at=at)

    def _lower_aggregate(self, call: FunctionCall, outside: frozenset[str]) -> tuple[ExpressionTree, frozenset[str]]:
        """The argument of an aggregate, a scan or a macro, and the labels that it applies to.

        These are the labels in brackets, or else the labels that occur only inside it. Aggregates in the argument come
        first: references to intermediates replace them.
        """
        check_arguments(call, self.names.error)
        named = frozenset(lowercase_labels(call.labels or ()))
        body = self._replace_aggregates(call.arguments[0], outside | named)
        inside = labels_of(body)
        for label in sorted(named - inside):
            raise self.names.error(f"{call.name}[{label}] aggregates a label that its argument lacks", call.at)
        for label in sorted(named & outside) if is_aggregate(call) else ():
            problem = f"{call.name}[{label}] aggregates a label that is also used outside it"
            raise self.names.error(f"{problem}; rename it inside, or name it in the aggregate there, too", call.at)
        labels = named or inside - outside
        if not labels:
            raise self.names.error(no_label_problem(call, outside, self._target_labels()), call.at)
        return body, labels

    def _broadcast(
        self, missing: tuple[str, ...], body: ExpressionTree, aggregate: str | None, at: Position
    ) -> ExpressionTree:
        """The value broadcast over `missing`, labels that only the target has: where(ones(j), value, value)."""
        target = self.assignment.target
        labels = lowercase_labels(target.labels)
        declaration = self.names.declared.get(target.tensor)
        if declaration is None or len(declaration.axes) != len(labels):
            label, axes = missing[0], ", ".join(f"{label}: 10" for label in labels)
            problem = f"label {label} occurs only on the left side; some tensor on the right must have it"
            raise self.names.error(f"{problem}, or declare its bound: tensor {target.tensor}[{axes}]", target.at)
        bounds = {label: bound for label, (_, bound) in zip(labels, declaration.axes, strict=True)}
        if aggregate is not None or not isinstance(body, TensorReference | NumberLiteral):
            remaining = tuple(label for label in labels if label not in missing)
            body = self._name_value("value", remaining, body, aggregate, at)
        ones: list[ExpressionTree] = [RangeExpression("ones", label, bounds[label], at) for label in missing]
        everywhere = reduce(lambda left, right: FunctionCall("and", None, (left, right), at), ones)
        return FunctionCall("where", None, (everywhere, body, body), at)

    def _promoted_among(self, labels: frozenset[str]) -> Promoted:
        return frozenset((label, tile) for label, tile in self.promoted if label in labels)

    def _add(
        self,
        name: str,
        labels: tuple[str, ...],
        body: ExpressionTree,
        aggregate: str | None,
        at: Position,
        along: str | None = None,
        state: str | None = None,
    ) -> None:
        """Add the EinSum of a body, and refuse labels that it loses without an aggregate."""
        join = JoinLowering(self.names, self.assignment.target.tensor, body)
        if not join.references:
            raise self.names.error("the right side has no tensor", at)
        missing = labels_of(body) - frozenset(labels)
        if missing and (aggregate is None or aggregate in SCANS):
            hint = "write sum(...), max(...), min(...) or prod(...) around the expression"
            raise self.names.error(f"{must_aggregate(missing)}; {hint}", at)
        promoted = self._promoted_among(labels_of(body) | frozenset(labels))
        operands = tuple(join.references)
        self.einsums.append(EinSum(Reference(name, labels), operands, join.join, aggregate, promoted, along, state))
