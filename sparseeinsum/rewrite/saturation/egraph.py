"""Saturation: terms in, classes of equal terms out, by egglog and the rules in rules.egg."""

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparseeinsum.extras import imported
from sparseeinsum.language.eingraph import Reference
from sparseeinsum.rewrite.saturation.terms import Add, Apply, Fold, Leaf, Mul, Number, Sum, Term, free_labels

EXTRA, PURPOSE = "rewriting", "the search for equal formulas"  # what brings the packages that it needs, and for what

_RULES = Path(__file__).with_name("rules.egg").read_text(encoding="utf-8")

LAWS = {
    "reordering": "terms and factors stand in any order",
    "distributing": "a * (b + c) = a * b + a * c",
    "splitting": "sum(a + b) = sum(a) + sum(b)",
    "moving": "sum[i](a * b) = a * sum[i](b) where a lacks i",
    "swapping": "sums are taken in any order",
    "functions": "functions have equal forms",
}
"""What every ruleset of equalities says."""

# What can be told at once is: schemas and numbers until nothing changes, then all equalities once.
_ROUND = "(run-schedule (saturate (run schema) (run numbers)) (run equalities))"

# The same, but for rules that match more often than that, which come at the expense of all others.
_ROUND_OF_FEW = (
    "(run-schedule (let-scheduler few (back-off :match-limit {most} :ban-length 1)) "
    "(saturate (run schema) (run numbers)) (run-with few equalities))"
)
_SHARE_OF_A_RULE = 0.25  # of the nodes that may come
_LEAST_MATCHES = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """Where saturation ends.

    Attributes:
        seconds: Of this thread's processor, after which no further round begins: what else a machine does while a
            program is planned changes no plan.
        nodes: Beyond which none does; where a round would pass it, rules that match most often are left out of it.
        rounds: How many there are at most.
    """

    seconds: float = 0.4
    nodes: int = 20_000
    rounds: int = 40


@dataclass(frozen=True, slots=True)
class Node:
    """One way to compute what a class holds: an operator, what it names, and classes."""

    operator: str  # the name of a class of terms
    names: tuple[str, ...]
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Classes:
    """Classes of equal terms.

    Attributes:
        nodes: Of every class, by its name.
        roots: The classes of the terms that were given.
        leaves: The references that leaves are, by their numbers.
        is_saturated: Whether no rule says anything new; else a limit was hit.
    """

    nodes: Mapping[str, Sequence[Node]]
    roots: tuple[str, ...]
    leaves: Sequence[Reference]
    is_saturated: bool

    def count(self) -> int:
        """All nodes."""
        return sum(map(len, self.nodes.values()))


def saturate(
    terms: Sequence[Term],
    bounds: Mapping[str, int],
    equal_pairs: Sequence[tuple[Term, Term]] = (),
    limits: Limits = Limits(),  # frozen
) -> Classes:
    """All that rules find to be equal to terms, within limits.

    Args:
        terms: What to begin with.
        bounds: Of all labels.
        equal_pairs: Terms that are equal already: those that differ only in the labels that their sums take.
        limits: Where to end.
    """
    writer = _Writer()
    graph = _begun(writer, terms, bounds, equal_pairs, LAWS)
    is_saturated = False
    for is_updated in _rounds(graph, limits):
        is_saturated = not is_updated
    _run(graph, "(run-schedule (saturate (run schema) (run numbers)))")
    return _classes(graph, len(terms), writer.leaves(), is_saturated)


def can_prove_equal(
    laws: Iterable[str],
    one: Term,
    other: Term,
    bounds: Mapping[str, int],
    equal_pairs: Sequence[tuple[Term, Term]] = (),
    limits: Limits = Limits(),  # frozen
) -> bool:
    """Whether some laws, and those of numbers, tell within limits that two terms are equal; the rest is as above."""
    writer = _Writer()
    graph = _begun(writer, [one, other], bounds, equal_pairs, laws)
    question = f"(check (= {writer.write(one)} {writer.write(other)}))"
    return any(_holds(graph, question) for _ in itertools.chain([True], _rounds(graph, limits)))


def _begun(
    writer: "_Writer",
    terms: Sequence[Term],
    bounds: Mapping[str, int],
    equal_pairs: Sequence[tuple[Term, Term]],
    laws: Iterable[str],
) -> Any:  # noqa: ANN401  # of egglog, whose bindings have no types of their own
    """A graph with terms, and rules of some laws."""
    lines = [_RULES, f"(unstable-combined-ruleset equalities {' '.join(laws)})"]
    lines += [f'(set (bound "{label}") {float(bound)!r})' for label, bound in bounds.items()]
    lines += [f"(RootOf {number} {writer.write(term)})" for number, term in enumerate(terms)]
    lines += [f"(union {writer.write(one)} {writer.write(other)})" for one, other in equal_pairs]
    lines += writer.schemas()
    graph = _egglog().EGraph()
    _run(graph, "\n".join(lines))
    return graph


def _rounds(graph: Any, limits: Limits) -> Iterator[bool]:  # noqa: ANN401
    """Apply all rules again and again; after each round, whether that told anything new."""
    end = time.thread_time() + limits.seconds
    before, size, explodes = 1, _size(graph), False
    for _ in range(limits.rounds):
        explodes = explodes or size * size / before > limits.nodes  # growing as it last did
        (report,) = _run(graph, _round_of_few(limits.nodes - size) if explodes else _ROUND)
        before, size = size, _size(graph)
        yield report.report.updated
        is_stuck = not report.report.updated or (explodes and size == before)
        if is_stuck or time.thread_time() > end or size > limits.nodes:
            return


def _round_of_few(nodes: int) -> str:
    return _ROUND_OF_FEW.format(most=max(_LEAST_MATCHES, int(nodes * _SHARE_OF_A_RULE)))


def _run(graph: Any, text: str) -> list[Any]:  # noqa: ANN401
    found: list[Any] = graph.run_program(*graph.parse_program(text))
    return found


def _holds(graph: Any, question: str) -> bool:  # noqa: ANN401
    try:
        _run(graph, question)
    except _egglog().EggSmolError:
        return False
    return True


def _egglog() -> Any:  # noqa: ANN401  # a module, which takes a while to import, and most programs need none of it
    return imported("egglog.bindings", EXTRA, PURPOSE)


def _size(graph: Any) -> int:  # noqa: ANN401
    (sizes,) = _run(graph, "(print-size)")
    return sum(size for _, size in sizes.sizes)


@dataclass(slots=True)
class _Writer:
    """Writes terms as egglog reads them; references become numbers."""

    numbers: dict[Reference, int] = field(default_factory=dict)

    def write(self, term: Term) -> str:
        """A term as text."""
        match term:
            case Leaf(reference):
                return f"(Leaf {self.numbers.setdefault(reference, len(self.numbers))})"
            case Number(value):
                return f"(Number {float(value)!r})"
            case Add(left, right):
                return f"(Add {self.write(left)} {self.write(right)})"
            case Mul(left, right):
                return f"(Mul {self.write(left)} {self.write(right)})"
            case Sum(label, body):
                return f'(Sum "{label}" {self.write(body)})'
            case Fold(aggregate, label, body):
                return f'(Fold "{aggregate}" "{label}" {self.write(body)})'
            case Apply(function, arguments):
                written = " ".join(map(self.write, arguments))
                return f'(Apply{len(arguments)} "{function}" {written})'

    def schemas(self) -> Iterator[str]:
        """The labels of all leaves."""
        for reference, number in self.numbers.items():
            labels = " ".join(f'"{label}"' for label in sorted(free_labels(Leaf(reference))))
            yield f"(set (free (Leaf {number})) {f'(set-of {labels})' if labels else '(set-empty)'})"

    def leaves(self) -> list[Reference]:
        """References by their numbers."""
        return list(self.numbers)


def _classes(graph: Any, count: int, leaves: Sequence[Reference], is_saturated: bool) -> Classes:  # noqa: ANN401
    serialized = graph.serialize([], max_functions=None, max_calls_per_function=None, include_temporary_functions=False)
    found: dict[str, Any] = json.loads(serialized.to_json())["nodes"]
    nodes: dict[str, list[Node]] = {}
    roots = [""] * count
    for each in found.values():
        names = tuple(_primitive(found[child]) for child in each["children"] if _is_primitive(found[child]))
        classes = tuple(found[child]["eclass"] for child in each["children"] if not _is_primitive(found[child]))
        if each["op"] == "RootOf":
            roots[int(names[0])] = classes[0]
        elif each["eclass"].startswith("Term"):
            nodes.setdefault(each["eclass"], []).append(Node(each["op"].rstrip("123"), names, classes))
    return Classes(nodes, tuple(roots), leaves, is_saturated)


def _is_primitive(node: Mapping[str, Any]) -> bool:
    return not node["eclass"].startswith(("Term", "Root"))


def _primitive(node: Mapping[str, Any]) -> str:
    text: str = node["op"]
    return text.strip('"')
