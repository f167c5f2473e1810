"""Language: refuses wrong calls of aggregates, scans, picks and macros, and says which labels are missing."""

from collections.abc import Set

from sparseeinsum.language.macros import MACROS
from sparseeinsum.language.syntax import (
    ErrorAt,
    ExpressionTree,
    FunctionCall,
    free_labels,
    is_aggregate,
    labels_of,
)
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import UserAggregate


def needs_labels(call: FunctionCall) -> bool:
    """Whether a call is of labels, and no scalar function: an aggregate, a scan, a pick or a macro."""
    return is_aggregate(call) or call.name in MACROS or goes_along(call)


def goes_along(call: FunctionCall) -> bool:
    """Whether a call depends on the order of the values along one label: a scan or a pick."""
    return call.name in SCANS or call.name in PICKS


def check_arguments(call: FunctionCall, error: ErrorAt) -> None:
    """Refuse a wrong number of arguments, labels in further arguments, and missing brackets.

    Raises:
        ParseError: The call is wrong.
    """
    if call.name not in MACROS and len(call.arguments) != 1:
        kind = "scan" if goes_along(call) else "aggregate"
        problem = f"the {kind} {call.name} takes one expression, not {len(call.arguments)}"
        raise error(problem, call.at)
    if call.name in MACROS and len(call.arguments) > MACROS[call.name].arguments:
        most = MACROS[call.name].arguments
        takes = "one expression" if most == 1 else f"an expression and {most - 1} more"
        raise error(f"{call.name} takes {takes}, not {len(call.arguments)}", call.at)
    for extra in call.arguments[1:]:
        if labels_of(extra):
            raise error(f"only the first argument of {call.name} can have labels", extra.at)
    if call.labels is None and not is_aggregate(call):
        problem = f"{call.name} needs its labels in brackets, as in {call.name}[j](...)"
        raise error(problem, call.at)


def check_one_label(call: FunctionCall, body: ExpressionTree, labels: frozenset[str], error: ErrorAt) -> None:
    """Refuse several labels, which are those of `body` among `labels`, for a call that takes one.

    Raises:
        ParseError: There are several.
    """
    in_order = [label for label in dict.fromkeys(free_labels(body)) if label in labels]
    if len(in_order) > 1:
        problem = f"{call.name} takes one label, not {', '.join(in_order)}"
        raise error(f"{problem}; say which, as in {call.name}[{in_order[-1]}](...)", call.at)


def no_label_problem(call: FunctionCall, outside: frozenset[str], target: frozenset[str]) -> str:
    """The error for an aggregate without labels; `outside` are the labels around it, `target` those of the result."""
    problem = f"{call.name}(...) has no label to aggregate"
    written = labels_of(call.arguments[0])
    if not written:
        return problem
    inner = sorted(written - outside)
    if inner:
        problem += f": an aggregate inside it aggregates {', '.join(inner)}"
        return f"{problem}; name the labels of every aggregate, as in {call.name}[{inner[0]}](...)"
    problem += f": {', '.join(sorted(written))} also {'occur' if len(written) > 1 else 'occurs'} outside it"
    candidates = sorted(written - target)
    if candidates:
        return f"{problem}; name the labels of every aggregate, as in {call.name}[{candidates[0]}](...)"
    return f"{problem}; leave {call.name} out, or use another label inside"


def wrong_labels_problem(record: UserAggregate, named: tuple[str, ...], inside: frozenset[str]) -> str:
    """The error for wrong labels in the brackets of a user's aggregate; `inside` are those of its arguments."""
    new = [label for label in named if label not in inside]
    if record.numbers == 1:
        return f"{record.name}[{new[0]}] aggregates a label that its arguments lack"
    aggregated = ", ".join(label for label in named if label in inside) or "j"
    problem = f"a state of {record.name} has {record.numbers} numbers; add one new label for them"
    return f"{problem}, as in {record.name}[{aggregated}, n](...)"


def must_aggregate(missing: Set[str]) -> str:
    """The error for labels that only the right side of an assignment has."""
    nouns, pronoun = ("labels", "them") if len(missing) > 1 else ("label", "it")
    return f"{nouns} {', '.join(sorted(missing))} must be aggregated, because the left side lacks {pronoun}"
