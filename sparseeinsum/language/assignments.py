"""Language: one assignment in, its EinSums out: aggregates find their labels, nested ones are computed before."""

from collections.abc import Collection, Set
from dataclasses import dataclass, field, replace
from functools import reduce

from sparseeinsum.language.eingraph import EinSum, Promoted, Reference
from sparseeinsum.language.joins import JoinReader, check_name
from sparseeinsum.language.macros import MACROS, MacroCall, one_hot
from sparseeinsum.language.names import Names
from sparseeinsum.language.scopes import resolve_bounds
from sparseeinsum.language.syntax import (
    Assignment,
    Expression,
    FunctionCall,
    Number,
    Position,
    RangeExpression,
    TensorReference,
    free_labels,
    is_aggregate,
    is_promoted,
    labels_of,
    lowercase_labels,
    references,
    written_labels,
)
from sparseeinsum.language.tensors import write_label
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES, UserAggregate


def lower_assignment(assignment: Assignment, names: Names) -> list[EinSum]:
    """The EinSums of an assignment, in order; the last one assigns its target.

    Args:
        assignment: Its references name tensors by labels.
        names: Those of the program, which may grow by names of values that are computed before.

    Raises:
        ParseError: A label, a name or a function makes no sense where it stands.
    """
    return _Statement(assignment, names).lower()


@dataclass
class _Statement:
    """Lowers one assignment: innermost aggregates first, each to an EinSum of its own."""

    assignment: Assignment
    names: Names
    einsums: list[EinSum] = field(default_factory=list)

    def lower(self) -> list[EinSum]:
        """The statement's EinSums, in order; the last one assigns its target."""
        self._check_spelling()
        target = self.assignment.target
        labels = lowercase_labels(target.labels)
        if len(set(labels)) < len(labels):
            raise self.names.error(f"a label stands twice on the left side of {target.tensor}", target.at)
        written = replace(self.assignment, value=self._without_one_hot(self.assignment.value))
        value = resolve_bounds(written, self.names.declared.get(target.tensor), self.names.error)
        if self._add_whole(value, labels):
            return self.einsums
        body, aggregate, at = self._read_value(value, frozenset(labels))
        lacking = tuple(label for label in labels if label not in labels_of(body))
        if lacking:
            body, aggregate = self._spread(lacking, body, aggregate, at), None
        self._add(target.tensor, labels, body, aggregate, at)
        return self.einsums

    def _add_whole(self, value: Expression, labels: tuple[str, ...]) -> bool:
        """Add the EinSum of a value that is a scan or a user's aggregate of just these labels; whether it is."""
        if not isinstance(value, FunctionCall) or not labels_of(value) >= frozenset(labels):
            return False
        name, at = self.assignment.target.tensor, value.at
        if _goes_along(value):
            body, along = self._scanned(value, *self._read_aggregate(value, frozenset(labels)))
            is_whole = labels_of(body) - {along} == frozenset(labels) - {along}
            if is_whole:
                self._add(name, labels, body, value.name, at, along)
            return is_whole
        if value.name in USER_AGGREGATES:
            body, taken, state = self._read_users_aggregate(value, frozenset(labels))
            if labels_of(body) - taken == frozenset(labels) - {state} and state in (None, *labels[-1:]):
                self._add(name, labels, body, value.name, at, state=state)
                return True
        return False

    def _read_value(self, value: Expression, outside: frozenset[str]) -> tuple[Expression, str | None, Position]:
        """What the target's EinSum joins and how it aggregates, everything inside computed before."""
        is_named = isinstance(value, FunctionCall) and (_goes_along(value) or value.name in USER_AGGREGATES)
        if not isinstance(value, FunctionCall) or is_named or not _is_folding(value):
            return self._replace_aggregates(value, outside), None, self.assignment.target.at
        body, taken = self._read_aggregate(value, outside)
        if is_aggregate(value):
            self._check_named(value, labels_of(body) - taken - outside)
        if value.name in MACROS:
            return self._expand(value, body, taken), None, value.at
        return body, value.name, value.at

    def _check_spelling(self) -> None:
        """A statement writes a label in one way: upper case promotes it everywhere."""
        spellings: dict[str, str] = {}
        for label, at in (*written_labels(self.assignment.target), *written_labels(self.assignment.value)):
            known = spellings.setdefault(label.lower(), label)
            if known != label:
                raise self.names.error(f"{known} and {label} are one label; write it one way in a statement", at)
        promoted = [label.lower() for label in spellings.values() if is_promoted(label)]
        self.promoted = frozenset((dict.fromkeys(promoted, 1) | self._tiles()).items())

    def _tiles(self) -> dict[str, int]:
        """Tiles that references give to labels, all of them the same."""
        found: dict[str, int] = {}
        for reference in (self.assignment.target, *references(self.assignment.value)):
            tiles = dict(reference.tiles)
            for label in lowercase_labels(reference.labels):
                tile = tiles.get(label, 1)
                if found.setdefault(label, tile) != tile:
                    both = " and ".join(write_label(label, {label: each}) for each in (found[label], tile))
                    problem = f"{both} are one label; give it one tile in a statement"
                    raise self.names.error(problem, reference.at)
        return {label: tile for label, tile in found.items() if tile > 1}

    def _check_named(self, call: FunctionCall, missing: frozenset[str]) -> None:
        """An aggregate that names its labels, and whose value is the whole result, must name all of them."""
        if missing:
            needed = ", ".join(sorted(missing | frozenset(lowercase_labels(call.labels or ()))))
            raise self.names.error(f"{_must_aggregate(missing)}; write {call.name}[{needed}](...)", call.at)

    def _without_one_hot(self, expression: Expression) -> Expression:
        if not isinstance(expression, FunctionCall):
            return expression
        call = replace(expression, arguments=tuple(map(self._without_one_hot, expression.arguments)))
        if call.name != "one_hot":
            return call
        if len(call.labels or ()) != 1 or len(call.arguments) != 1:
            raise self.names.error("one_hot takes one new label and one expression, as in one_hot[k](X[i])", call.at)
        (label,) = call.labels or ()
        if label.lower() in labels_of(call.arguments[0]):
            problem = f"one_hot[{label}] makes a label that its argument has; give it another one"
            raise self.names.error(problem, call.at)
        return one_hot(label, call.arguments[0], call.at)

    def _replace_aggregates(self, expression: Expression, outside: frozenset[str]) -> Expression:
        """The expression with every aggregate computed by an EinSum before; `outside`: labels used around it."""
        if not isinstance(expression, FunctionCall):
            return expression
        if _is_folding(expression):
            return self._name_aggregate(expression, outside)
        check_name(expression, self.names)
        arguments = []
        for position, argument in enumerate(expression.arguments):
            others = (*expression.arguments[:position], *expression.arguments[position + 1 :])
            beside = frozenset().union(*(labels_of(other) for other in others)) if others else frozenset()
            arguments.append(self._replace_aggregates(argument, outside | beside))
        return replace(expression, arguments=tuple(arguments))

    def _name_aggregate(self, call: FunctionCall, outside: frozenset[str]) -> TensorReference:
        if call.name in USER_AGGREGATES:
            body, taken, state = self._read_users_aggregate(call, outside)
            free = tuple(label for label in dict.fromkeys(free_labels(body)) if label not in taken)
            free = free if state is None else (*free, state)
            return self._name_value(call.name, free, body, call.name, call.at, state=state)
        body, taken = self._read_aggregate(call, outside)
        gone = taken if is_aggregate(call) else frozenset()
        free = tuple(label for label in dict.fromkeys(free_labels(body)) if label not in gone)
        if _goes_along(call):
            value, along = self._scanned(call, body, taken)
            return self._name_value(call.name, free, value, call.name, call.at, along)
        if call.name in MACROS:
            return self._name_value(call.name, free, self._expand(call, body, taken), None, call.at)
        return self._name_value(call.name, free, body, call.name, call.at)

    def _read_users_aggregate(
        self, call: FunctionCall, outside: frozenset[str]
    ) -> tuple[Expression, frozenset[str], str | None]:
        """What it is of, tensors; the labels that it takes, and the one that counts the numbers of its states."""
        record = USER_AGGREGATES[call.name]
        if len(call.arguments) != record.arguments:
            takes = "one expression" if record.arguments == 1 else "two expressions"
            raise self.names.error(f"the aggregate {call.name} takes {takes}, not {len(call.arguments)}", call.at)
        named = lowercase_labels(call.labels or ())
        read = [self._replace_aggregates(argument, outside | frozenset(named)) for argument in call.arguments]
        inside = frozenset().union(*map(labels_of, read))
        new = tuple(label for label in named if label not in inside)
        if len(new) != (record.numbers > 1):
            raise self.names.error(_wrong_state(record, named, inside), call.at)
        taken = frozenset(named).difference(new) or inside - outside
        if not taken:
            raise self.names.error(self._nothing_to_aggregate(call, outside), call.at)
        for label in sorted(taken & outside):
            problem = f"{call.name}[{label}] aggregates a label that is also used outside it"
            raise self.names.error(f"{problem}; rename it inside", call.at)
        for argument in read:
            if not (any(references(argument)) or labels_of(argument)):
                problem = f"an argument of {call.name} has no tensor"
                raise self.names.error(f"{problem}; multiply ones(j) by a number, as in 3 * ones(j)", call.at)
        if new and new[0] in dict(self.promoted):
            problem = f"{call.name} has {new[0]} inside arrays, so {new[0]} is no key here"
            raise self.names.error(f"{problem}; write it in lower case and without a tile", call.at)
        tensors = [self._as_reference(argument, call.at) for argument in read]
        body = tensors[0] if len(tensors) == 1 else FunctionCall(record.pair, None, tuple(tensors), call.at)
        return body, taken, new[0] if new else None

    def _as_reference(self, expression: Expression, at: Position) -> Expression:
        """A reference to what has the value of an expression, which is computed before unless it is one."""
        if isinstance(expression, TensorReference | RangeExpression):
            return expression
        return self._name_value("value", tuple(dict.fromkeys(free_labels(expression))), expression, None, at)

    def _scanned(self, call: FunctionCall, body: Expression, taken: frozenset[str]) -> tuple[Expression, str]:
        """What a scan or a pick is of, a tensor, and the label that it goes along."""
        self._check_one_label(call, body, taken)
        (along,) = taken
        if along in dict(self.promoted):
            problem = f"{call.name} goes along {along} inside arrays, so {along} is no key here"
            raise self.names.error(f"{problem}; write it in lower case and without a tile", call.at)
        return self._as_reference(body, call.at), along

    def _check_one_label(self, call: FunctionCall, body: Expression, taken: frozenset[str]) -> None:
        labels = tuple(label for label in dict.fromkeys(free_labels(body)) if label in taken)
        if len(labels) > 1:
            problem = f"{call.name} takes one label, not {', '.join(labels)}"
            raise self.names.error(f"{problem}; say which, as in {call.name}[{labels[-1]}](...)", call.at)

    def _expand(self, call: FunctionCall, body: Expression, taken: frozenset[str]) -> Expression:
        """What a macro means; values in it that have a name are computed before."""
        macro = MACROS[call.name]
        labels = tuple(label for label in dict.fromkeys(free_labels(body)) if label in taken)
        if macro.takes_one_label:
            self._check_one_label(call, body, taken)

        def name_value(
            suffix: str, labels: tuple[str, ...], expression: Expression, aggregate: str | None
        ) -> TensorReference:
            return self._name_value(suffix, labels, expression, aggregate, call.at)

        return macro.expand(MacroCall(body, labels, call.arguments[1:], name_value))

    def _name_value(
        self,
        suffix: str,
        labels: tuple[str, ...],
        body: Expression,
        aggregate: str | None,
        at: Position,
        along: str | None = None,
        state: str | None = None,
    ) -> TensorReference:
        """A reference to what an EinSum computes before; the same is computed once in a program."""
        promoted = self._promoted_among(labels_of(body) | frozenset(labels))
        key = (labels, body, aggregate, along, promoted)
        if key not in self.names.values:
            name = self.names.invent(f"{self.assignment.target.tensor}_{suffix}")
            self._add(name, labels, body, aggregate, at, along, state)
            self.names.values[key] = TensorReference(name, labels, at=at)
        return replace(self.names.values[key], at=at)

    def _read_aggregate(self, call: FunctionCall, outside: frozenset[str]) -> tuple[Expression, frozenset[str]]:
        """What an aggregate or macro is of, inner aggregates computed before, and the labels that it takes.

        Without names in brackets those are the labels that appear in it alone; inner aggregates take theirs first.
        """
        self._check_arguments(call)
        named = frozenset(lowercase_labels(call.labels or ()))
        body = self._replace_aggregates(call.arguments[0], outside | named)
        inside = labels_of(body)
        for label in sorted(named - inside):
            raise self.names.error(f"{call.name}[{label}] aggregates a label that its argument lacks", call.at)
        for label in sorted(named & outside) if is_aggregate(call) else ():
            problem = f"{call.name}[{label}] aggregates a label that is also used outside it"
            raise self.names.error(f"{problem}; rename it inside, or name it in the aggregate there, too", call.at)
        taken = named or inside - outside
        if not taken:
            raise self.names.error(self._nothing_to_aggregate(call, outside), call.at)
        return body, taken

    def _check_arguments(self, call: FunctionCall) -> None:
        if call.name not in MACROS and len(call.arguments) != 1:
            kind = "scan" if _goes_along(call) else "aggregate"
            problem = f"the {kind} {call.name} takes one expression, not {len(call.arguments)}"
            raise self.names.error(problem, call.at)
        if call.name in MACROS and len(call.arguments) > MACROS[call.name].arguments:
            most = MACROS[call.name].arguments
            takes = "one expression" if most == 1 else f"an expression and {most - 1} more"
            raise self.names.error(f"{call.name} takes {takes}, not {len(call.arguments)}", call.at)
        for extra in call.arguments[1:]:
            if labels_of(extra):
                raise self.names.error(f"the further arguments of {call.name} have no labels", extra.at)
        if call.labels is None and not is_aggregate(call):
            problem = f"{call.name} must say which labels it takes, as in {call.name}[j](...)"
            raise self.names.error(problem, call.at)

    def _nothing_to_aggregate(self, call: FunctionCall, outside: frozenset[str]) -> str:
        problem = f"{call.name}(...) has no label to aggregate"
        written = labels_of(call.arguments[0])
        if not written:
            return problem
        taken = sorted(written - outside)
        if taken:
            problem += f": {', '.join(taken)} {_verb('go', taken)} to an aggregate inside it"
            return f"{problem}; say what every aggregate takes, as in {call.name}[{taken[0]}](...)"
        problem += f": {', '.join(sorted(written))} also {_verb('stand', written)} outside it"
        candidates = sorted(written - frozenset(lowercase_labels(self.assignment.target.labels)))
        if candidates:
            return f"{problem}; say what every aggregate takes, as in {call.name}[{candidates[0]}](...)"
        return f"{problem}; leave {call.name} out, or use another label inside"

    def _spread(self, lacking: tuple[str, ...], body: Expression, aggregate: str | None, at: Position) -> Expression:
        """The value under labels that only the target has: where(ones(j), value, value) keeps all of it."""
        target = self.assignment.target
        labels = lowercase_labels(target.labels)
        declaration = self.names.declared.get(target.tensor)
        if declaration is None or len(declaration.axes) != len(labels):
            label, axes = lacking[0], ", ".join(f"{label}: 10" for label in labels)
            problem = f"label {label} stands only on the left side; some tensor on the right must have it"
            raise self.names.error(f"{problem}, or declare its bound: tensor {target.tensor}[{axes}]", target.at)
        bounds = {label: bound for label, (_, bound) in zip(labels, declaration.axes, strict=True)}
        if aggregate is not None or not isinstance(body, TensorReference | Number):
            kept = tuple(label for label in labels if label not in lacking)
            body = self._name_value("value", kept, body, aggregate, at)
        ones: list[Expression] = [RangeExpression("ones", label, bounds[label], at) for label in lacking]
        everywhere = reduce(lambda left, right: FunctionCall("and", None, (left, right), at), ones)
        return FunctionCall("where", None, (everywhere, body, body), at)

    def _promoted_among(self, labels: frozenset[str]) -> Promoted:
        return frozenset((label, tile) for label, tile in self.promoted if label in labels)

    def _add(
        self,
        name: str,
        labels: tuple[str, ...],
        body: Expression,
        aggregate: str | None,
        at: Position,
        along: str | None = None,
        state: str | None = None,
    ) -> None:
        read = JoinReader(self.names, self.assignment.target.tensor, body)
        if not read.references:
            raise self.names.error("the right side names no tensor", at)
        missing = labels_of(body) - frozenset(labels)
        if missing and (aggregate is None or aggregate in SCANS):
            hint = "write sum(...), max(...), min(...) or prod(...) around the expression"
            raise self.names.error(f"{_must_aggregate(missing)}; {hint}", at)
        used = self._promoted_among(labels_of(body) | frozenset(labels))
        operands = tuple(read.references)
        self.einsums.append(EinSum(Reference(name, labels), operands, read.join, aggregate, used, along, state))


def _is_folding(call: FunctionCall) -> bool:
    """Whether a call is of all values of a label: an aggregate, a scan or a macro."""
    return is_aggregate(call) or call.name in MACROS or _goes_along(call)


def _goes_along(call: FunctionCall) -> bool:
    """Whether a call is of one label whose values lie in order: a scan, or a pick of one of them."""
    return call.name in SCANS or call.name in PICKS


def _wrong_state(record: UserAggregate, named: tuple[str, ...], inside: frozenset[str]) -> str:
    """What is wrong with the labels of a user's aggregate."""
    new = [label for label in named if label not in inside]
    if record.numbers == 1:
        return f"{record.name}[{new[0]}] aggregates a label that its arguments lack"
    taken = ", ".join(label for label in named if label in inside) or "j"
    problem = f"states of {record.name} have {record.numbers} numbers, which one new label counts"
    return f"{problem}, as in {record.name}[{taken}, n](...)"


def _must_aggregate(missing: Set[str]) -> str:
    nouns, pronoun = ("labels", "them") if len(missing) > 1 else ("label", "it")
    return f"{nouns} {', '.join(sorted(missing))} must be aggregated, because the left side lacks {pronoun}"


def _verb(verb: str, subjects: Collection[str]) -> str:
    """A verb in the third person, which for one subject ends in s."""
    return verb if len(subjects) > 1 else f"{verb}es" if verb.endswith("o") else f"{verb}s"
