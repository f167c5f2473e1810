"""Picture: the boxes of a drawing and the links between them, from an explanation."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.choice import promoted_tiles
from sparseeinsum.decompose.decomposed_graph import Step
from sparseeinsum.language.eingraph import Reference, write_reference
from sparseeinsum.plans.analysis import EinSumRun
from sparseeinsum.plans.explain import Explanation
from sparseeinsum.plans.result_sizes import ResultSizes, step_sizes
from sparseeinsum.plans.units import write_bytes, write_count, write_seconds
from sparseeinsum.render.relation_names import write_relation, write_schema
from sparseeinsum.semantics.exactness import JoinKind

_LONGEST_LINE = 46  # characters of notation
_COMPUTED_WEIGHT = 8.0  # of an edge from a result, which is to run straight, to that of one from an input

Run = tuple[str, str]  # text, and the class of its style


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text.

    Attributes:
        runs: Its parts, each with a style.
        style: `notation` or `small`.
    """

    runs: tuple[Run, ...]
    style: str = "small"

    @property
    def length(self) -> int:
        """The number of characters of the line, in all styles."""
        return sum(len(text) for text, _ in self.runs)


@dataclass(frozen=True, slots=True)
class Meter:
    """A line of text with a bar beneath.

    Attributes:
        line: The text.
        shares: Of the time of the whole plan, each with the class of its colour.
    """

    line: Line
    shares: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Card:
    """A box of the drawing.

    Attributes:
        name: A unique name.
        kind: `input`, `einsum`, `part`, `repartition` or `output`.
        layer: The layer of the drawing; layer 0 is at the top.
        lines: The lines of text.
        meters: Lines with bars that show shares of the time.
    """

    name: str
    kind: str
    layer: int
    lines: tuple[Line, ...]
    meters: tuple[Meter, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """An arrow from one box to another: a tensor as it is stored, or a repartitioned one."""

    source: str
    target: str
    weight: float
    is_changed: bool = False


def notation_lines(text: str, promoted: frozenset[str], longest: int = _LONGEST_LINE) -> tuple[Line, ...]:
    """An EinSum in lines, its promoted labels marked.

    Args:
        text: The EinSum in notation.
        promoted: Its promoted labels, in lower case.
        longest: Characters of a line; lines break outside brackets.

    >>> [line.length for line in notation_lines("C[I] = sum(A[I, j])", frozenset("i"))]
    [19]
    """
    keys = {label.upper() for label in promoted}
    lines: list[list[Run]] = [[]]
    words: list[Run] = []
    depth = 0
    for token in re.findall(r"\w+|\W", text):
        depth += (token == "[") - (token == "]")
        words.append((token, "key" if depth and token in keys else ""))
        if token == " " and not depth:
            _append(lines, words, longest)
            words = []
    _append(lines, words, longest)
    return tuple(Line(tuple(runs), "notation") for runs in lines)


def _append(lines: list[list[Run]], words: list[Run], longest: int) -> None:
    if lines[-1] and sum(len(text) for text, _ in (*lines[-1], *words)) > longest:
        lines.append([("\N{NO-BREAK SPACE}" * 4, "")])
    lines[-1].extend(words)


def marked(line: Line, element: str) -> str:
    """A line as markup, each run that has a style in an element of that class."""
    return "".join(
        f'<{element} class="{style}">{escape(text)}</{element}>' if style else escape(text) for text, style in line.runs
    )


def plain(text: str) -> Line:
    """A small line of one style."""
    return Line(((text, ""),))


@dataclass(slots=True)
class Deck:
    """All boxes of a drawing in topological order, and the links between them."""

    explanation: Explanation
    cards: list[Card] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    _depths: dict[str, int] = field(default_factory=dict)

    def add_all(self) -> None:
        """Create all boxes and links."""
        steps = self.explanation.plan.decomposed.steps
        for step in steps:
            depths = (self._depths.get(operand.tensor, 0) for operand in step.einsum.operands)
            self._depths[step.einsum.output.tensor] = 1 + max(depths)
        self.cards.extend(self._inputs())
        for step in steps:
            self.cards.append(self._einsum(step))
            for index, operand in enumerate(step.einsum.operands):
                self._link_operand(step, index, operand)
        for name in self.explanation.plan.decomposed.graph.outputs:
            self._deliver(name)

    def _inputs(self) -> Iterator[Card]:
        first: dict[str, int] = {}
        for step in self.explanation.plan.decomposed.steps:
            depth = self._depths[step.einsum.output.tensor]
            for operand in step.einsum.operands:
                if operand.tensor not in self._depths:
                    first[operand.tensor] = min(first.get(operand.tensor, depth), depth)
        for name, depth in first.items():
            stored = self.explanation.plan.inputs[name].stored
            schema = Schema(stored.tensor, stored.decomposition)
            entries = self.explanation.plan.alternatives.model.statistics[name].entries
            density = f", density {entries / stored.tensor.size:.3g}" if stored.tensor.size else ""
            keys = frozenset(schema.keys)
            lines = notation_lines(write_schema(schema), keys)
            numbers = plain(f"{write_count(entries)} entries{density}")
            yield Card(name, "input", 2 * depth - 2, (*lines, plain(write_relation(schema)), numbers))

    def _einsum(self, step: Step) -> Card:
        name = step.einsum.output.tensor
        schema = Schema(self.explanation.plan.decomposed.graph.tensors[name], step.result)
        notes = [plain(text) for text in _absences(step)]
        lines = (*notation_lines(step.notation, step.promoted), plain(write_relation(schema)), *notes)
        kind = "part" if name in self.explanation.plan.rewriting.all_parts else "einsum"
        return Card(name, kind, 2 * self._depths[name], lines, tuple(self._meters(step)))

    def _meters(self, step: Step) -> Iterator[Meter]:
        sizes = step_sizes(self.explanation.plan.alternatives.model, step)
        total = self.explanation.plan.decomposed.seconds
        shares = zip(
            (step.join_seconds, step.aggregation_seconds, step.repartition_seconds),
            ("join", "aggregate", "repartition"),
            strict=True,
        )
        yield Meter(
            _sizes_line("expected", sizes.tuples, sizes.expected_bytes, step.seconds, total),
            tuple((_share(seconds, total), style) for seconds, style in shares),
        )
        if self.explanation.analysis is not None:
            runs = self.explanation.analysis.einsums
            yield self._actual(runs[step.einsum.output.tensor], sizes, runs)

    def _actual(self, run: EinSumRun, sizes: ResultSizes, runs: Mapping[str, EinSumRun]) -> Meter:
        total = sum(other.seconds or 0.0 for other in runs.values())
        line = _sizes_line("actual", run.tuples, run.tuples * sizes.tuple_bytes, run.seconds, total)
        return Meter(line, ((_share(run.seconds or 0.0, total), "actual"),))

    def _link_operand(self, step: Step, index: int, operand: Reference) -> None:
        decomposed, model = self.explanation.plan.decomposed, self.explanation.plan.alternatives.model
        name, weight = step.einsum.output.tensor, _COMPUTED_WEIGHT if operand.tensor in self._depths else 1.0
        producer = decomposed.step_of(operand.tensor)
        stored = decomposed.inputs[operand.tensor] if producer is None else producer.result
        read = step.operand(index).tiles
        tiles = promoted_tiles(step.einsum, step.choice)
        work = model.repartitions.work(operand.tensor, stored.tiles, read)
        if stored.tiles == read:
            self.links.append(Link(operand.tensor, name, weight))
            return
        lines = (
            *notation_lines(f"becomes {write_reference(operand, tiles)}", step.promoted),
            plain(f"{write_seconds(work.seconds(model.constants))}, {write_bytes(work.bytes_moved)} written"),
        )
        card = Card(f"{name} {index}", "repartition", 2 * self._depths[name] - 1, lines)
        self.cards.append(card)
        self.links += [Link(operand.tensor, card.name, weight, True), Link(card.name, name, weight, True)]

    def _deliver(self, name: str) -> None:
        decomposed, model = self.explanation.plan.decomposed, self.explanation.plan.alternatives.model
        step = decomposed.step_of(name)
        assert step is not None
        layout = decomposed.layouts[name]
        work = model.repartitions.work(name, step.result.tiles, layout.tiles)
        schema = Schema(decomposed.graph.tensors[name], layout)
        lines = [Line((("result ", ""), (name, "name"))), plain(write_relation(schema))]
        if layout != step.result:
            spent = write_seconds(work.seconds(model.constants))
            lines.append(plain(f"repartition: {spent}, {write_bytes(work.bytes_moved)} written"))
        card = Card(f"{name} result", "output", 2 * self._depths[name] + 1, tuple(lines))
        self.cards.append(card)
        self.links.append(Link(name, card.name, _COMPUTED_WEIGHT, is_changed=layout != step.result))


def cards_of(explanation: Explanation) -> Deck:
    """The boxes and links of a plan."""
    deck = Deck(explanation)
    deck.add_all()
    return deck


def _absences(step: Step) -> Iterator[str]:
    pairs = zip(step.einsum.operands, step.absence.dense, strict=True)
    for name in dict.fromkeys(operand.tensor for operand, is_dense in pairs if is_dense):
        yield f"every tuple of {name} made present"
    if step.absence.join != JoinKind.INNER:
        yield f"{step.absence.join} join"


def _sizes_line(label: str, tuples: float, size: float, seconds: float | None, total: float) -> Line:
    spent = "time in its readers" if seconds is None else f"{write_seconds(seconds)} ({_share(seconds, total):.0%})"
    counted = f"{write_count(tuples)} {'tuple' if round(tuples) == 1 else 'tuples'}"
    return Line(((f"{label} ", "what"), (f"{counted}, {write_bytes(size)}, {spent}", "")))


def _share(seconds: float, total: float) -> float:
    return seconds / total if total else 0.0
