"""Saturation: finds all terms that the rules in rules.egg prove equal to given ones, by egglog."""

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparseeinsum.environment.extras import imported_alone
from sparseeinsum.language.eingraph import Reference
from sparseeinsum.rewrite.saturation.terms import (
    Add,
    AggregateTerm,
    Apply,
    Leaf,
    Mul,
    NumberTerm,
    Sum,
    Term,
    free_labels,
)

EXTRA, PURPOSE = "rewriting", "the search for equal formulas"  # of the optional packages that this folder needs

_RULES = Path(__file__).with_name("rules.egg").read_text(encoding="utf-8")

LAWS = {
    "reordering": "terms and factors stand in any order",
    "distributing": "a * (b + c) = a * b + a * c",
    "splitting": "sum(a + b) = sum(a) + sum(b)",
    "moving": "sum[i](a * b) = a * sum[i](b) where a lacks i",
    "swapping": "sums are taken in any order",
    "functions": "functions have equal forms",
}
"""The rulesets of equalities, and what each says."""

# One round: schemas and numbers until nothing changes, then all equalities once.
_ROUND = "(run-schedule (saturate (run schema) (run numbers)) (run equalities))"

# The same, but rules that match more than {most} times are skipped, because they would leave no room for the others.
_LIMITED_ROUND = (
    "(run-schedule (let-scheduler few (back-off :match-limit {most} :ban-length 1)) "
    "(saturate (run schema) (run numbers)) (run-with few equalities))"
)
_MATCH_SHARE = 0.25  # the share of the e-nodes up to the limit that one rule may add
_MIN_MATCHES = 100


@dataclass(frozen=True, slots=True)
class SaturationLimits:
    """When saturation ends.

    Attributes:
        seconds: No round starts later. It is the processor time of this thread, so that the load of the machine changes
            no plan.
        nodes: No round starts with more e-nodes. Where a round would exceed it, rules that match most often are
            skipped.
        rounds: The most rounds.
    """

    seconds: float = 0.4
    nodes: int = 20_000
    rounds: int = 40


@dataclass(frozen=True, slots=True)
class ENode:
    """One way to compute an e-class: an operator, the names that belong to it, and the e-classes it reads."""

    operator: str  # a constructor in rules.egg, without the number of arguments of Apply
    names: tuple[str, ...]
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EClasses:
    """E-classes: classes of equal terms.

    Attributes:
        nodes: The e-nodes of every class, by the name of the class.
        roots: The classes of the terms that saturation started with.
        leaves: The references that leaves stand for, by number.
        is_saturated: Whether no rule finds anything new; otherwise a limit was reached.
    """

    nodes: Mapping[str, Sequence[ENode]]
    roots: tuple[str, ...]
    leaves: Sequence[Reference]
    is_saturated: bool

    def count(self) -> int:
        """The number of all e-nodes."""
        return sum(map(len, self.nodes.values()))


def saturate(
    terms: Sequence[Term],
    bounds: Mapping[str, int],
    equal_pairs: Sequence[tuple[Term, Term]] = (),
    limits: SaturationLimits = SaturationLimits(),  # frozen
) -> EClasses:
    """All terms that the rules prove equal to `terms`, within limits.

    Args:
        terms: The terms to start with.
        bounds: Bounds of all labels.
        equal_pairs: Pairs of terms that are known to be equal, because they differ only in the labels of their sums.
        limits: When to end.
    """
    writer = _EgglogWriter()
    graph = _new_egraph(writer, terms, bounds, equal_pairs, LAWS)
    is_saturated = False
    for is_updated in _rounds(graph, limits):
        is_saturated = not is_updated
    _run(graph, "(run-schedule (saturate (run schema) (run numbers)))")
    return _classes(graph, len(terms), writer.leaves(), is_saturated)


def can_prove_equal(
    laws: Iterable[str],
    first: Term,
    second: Term,
    bounds: Mapping[str, int],
    equal_pairs: Sequence[tuple[Term, Term]] = (),
    limits: SaturationLimits = SaturationLimits(),  # frozen
) -> bool:
    """Whether `laws`, and the rules for numbers, prove within limits that two terms are equal.

    Args:
        laws: Names of laws, keys of LAWS.
        first: A term.
        second: Another term.
        bounds: Bounds of all labels.
        equal_pairs: Pairs of terms that are known to be equal, because they differ only in the labels of their sums.
        limits: When to end.
    """
    writer = _EgglogWriter()
    graph = _new_egraph(writer, [first, second], bounds, equal_pairs, laws)
    question = f"(check (= {writer.write(first)} {writer.write(second)}))"
    return any(_holds(graph, question) for _ in itertools.chain([True], _rounds(graph, limits)))


def _new_egraph(
    writer: "_EgglogWriter",
    terms: Sequence[Term],
    bounds: Mapping[str, int],
    equal_pairs: Sequence[tuple[Term, Term]],
    laws: Iterable[str],
) -> Any:  # noqa: ANN401  # egglog's bindings have no types
    """An e-graph of egglog with terms, and with the rules of some laws.

    Args:
        writer: Writes the terms.
        terms: The roots.
        bounds: Bounds of all labels.
        equal_pairs: Pairs of terms to make equal.
        laws: The rulesets of LAWS to use.
    """
    lines = [_RULES, f"(unstable-combined-ruleset equalities {' '.join(laws)})"]
    lines += [f'(set (bound "{label}") {float(bound)!r})' for label, bound in bounds.items()]
    lines += [f"(RootOf {number} {writer.write(term)})" for number, term in enumerate(terms)]
    lines += [f"(union {writer.write(first)} {writer.write(second)})" for first, second in equal_pairs]
    lines += writer.schemas()
    graph = _egglog().EGraph()
    _run(graph, "\n".join(lines))
    return graph


def _rounds(graph: Any, limits: SaturationLimits) -> Iterator[bool]:  # noqa: ANN401
    """Apply all rules repeatedly; after each round, yield whether it found anything new."""
    end = time.thread_time() + limits.seconds
    before, size, explodes = 1, _size(graph), False
    for _ in range(limits.rounds):
        explodes = explodes or size * size / before > limits.nodes  # if it grows by the same factor again
        (report,) = _run(graph, _limited_round(limits.nodes - size) if explodes else _ROUND)
        before, size = size, _size(graph)
        yield report.report.updated
        is_stuck = not report.report.updated or (explodes and size == before)
        if is_stuck or time.thread_time() > end or size > limits.nodes:
            return


def _limited_round(nodes: int) -> str:
    return _LIMITED_ROUND.format(most=max(_MIN_MATCHES, int(nodes * _MATCH_SHARE)))


def _run(graph: Any, text: str) -> list[Any]:  # noqa: ANN401
    reports: list[Any] = graph.run_program(*graph.parse_program(text))
    return reports


def _holds(graph: Any, question: str) -> bool:  # noqa: ANN401
    try:
        _run(graph, question)
    except _egglog().EggSmolError:
        return False
    return True


def _egglog() -> Any:  # noqa: ANN401  # the rest of the package takes a while, and is for programs in Python
    return imported_alone("egglog", "bindings", EXTRA, PURPOSE)


def _size(graph: Any) -> int:  # noqa: ANN401
    (sizes,) = _run(graph, "(print-size)")
    return sum(size for _, size in sizes.sizes)


@dataclass(slots=True)
class _EgglogWriter:
    """Writes terms as egglog reads them; references become numbers."""

    numbers: dict[Reference, int] = field(default_factory=dict)

    def write(self, term: Term) -> str:
        """A term in the syntax of egglog; a reference gets a number when it is first written."""
        match term:
            case Leaf(reference):
                return f"(Leaf {self.numbers.setdefault(reference, len(self.numbers))})"
            case NumberTerm(value):
                return f"(Number {float(value)!r})"
            case Add(left, right):
                return f"(Add {self.write(left)} {self.write(right)})"
            case Mul(left, right):
                return f"(Mul {self.write(left)} {self.write(right)})"
            case Sum(label, body):
                return f'(Sum "{label}" {self.write(body)})'
            case AggregateTerm(aggregate, label, body):
                return f'(Fold "{aggregate}" "{label}" {self.write(body)})'
            case Apply(function, arguments):
                written = " ".join(map(self.write, arguments))
                return f'(Apply{len(arguments)} "{function}" {written})'

    def schemas(self) -> Iterator[str]:
        """Commands that tell egglog the labels of all leaves."""
        for reference, number in self.numbers.items():
            labels = " ".join(f'"{label}"' for label in sorted(free_labels(Leaf(reference))))
            yield f"(set (free (Leaf {number})) {f'(set-of {labels})' if labels else '(set-empty)'})"

    def leaves(self) -> list[Reference]:
        """The references by their numbers."""
        return list(self.numbers)


def _classes(graph: Any, root_count: int, leaves: Sequence[Reference], is_saturated: bool) -> EClasses:  # noqa: ANN401
    """The e-classes of an e-graph with `root_count` roots, from the JSON that egglog writes."""
    serialized = graph.serialize([], max_functions=None, max_calls_per_function=None, include_temporary_functions=False)
    by_id: dict[str, Any] = json.loads(serialized.to_json())["nodes"]
    nodes: dict[str, list[ENode]] = {}
    roots = [""] * root_count
    for node in by_id.values():
        operator, eclass = node["op"], node["eclass"]
        is_root = operator == "RootOf"
        if not is_root and not eclass.startswith("Term"):
            continue
        names, classes = [], []
        for child in node["children"]:
            read = by_id[child]
            if read["eclass"].startswith("Term"):
                classes.append(read["eclass"])
            else:
                names.append(read["op"].strip('"'))
        if is_root:
            roots[int(names[0])] = classes[0]
        else:
            nodes.setdefault(eclass, []).append(ENode(operator.rstrip("123"), tuple(names), tuple(classes)))
    return EClasses(nodes, tuple(roots), leaves, is_saturated)
