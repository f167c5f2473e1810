"""Plans: a program cut among workers: its partition vectors and the floats that they transfer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.table import Table

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.eindecomp.baselines import even_choices, named_scheme, scheme_choices
from sparseeinsum.decompose.eindecomp.partitioning import PartitionedEinSum, Partitioning, least_partition
from sparseeinsum.decompose.eindecomp.replay import Replay, replay
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask
from sparseeinsum.language.eingraph import write_einsum
from sparseeinsum.plans.preview import parts_text
from sparseeinsum.plans.rewriting_notes import rewriting_notes
from sparseeinsum.rewrite.rewrite_summary import RewriteSummary

CutAxes = Mapping[str, int | str]  # the axis to cut, by tensor: a position or a name


@dataclass(frozen=True, slots=True)
class PartitionedProgram:
    """A program cut among workers; `str` gives a table.

    Attributes:
        task: The possible partition vectors and the floats that they transfer.
        best: The chosen partition vectors.
        rewriting: How its EinSums came from those that were written; None if the plan that it belongs to says so.
    """

    task: TransferTask
    best: Partitioning
    rewriting: RewriteSummary | None = None

    @property
    def workers(self) -> int:
        """The number of workers among which the program is cut."""
        return self.best.workers

    @property
    def floats(self) -> float:
        """The floats that are transferred if no worker has any of its operands: an upper bound."""
        return self.best.floats

    @property
    def moved(self) -> float:
        """The floats that workers send each other."""
        return self.replay().total.floats

    @property
    def vectors(self) -> dict[str, dict[str, int]]:
        """The number of pieces of every label of an EinSum, by the name of its result."""
        return {step.einsum.output.tensor: dict(step.pieces) for step in self.best.steps}

    def even(self) -> Partitioning:
        """The partition that cuts all labels of an EinSum alike (SQRT in the EinDecomp paper)."""
        return self._searched_among(even_choices(self.best.graph, self.workers))

    def along(self, scheme: CutAxes) -> Partitioning:
        """The partition that cuts given axes of tensors, as in {"X": 0}, into one piece per worker.

        If an EinSum has several of these axes, the first one of the scheme is cut. An EinSum without such an axis gets
        the vector that transfers the fewest floats.

        Args:
            scheme: The axis to cut, by tensor: its name or its position.

        Raises:
            PlanError: A tensor has no such axis.
        """
        graph = self.best.graph
        return self._searched_among(scheme_choices(graph, self.workers, named_scheme(graph, scheme)))

    def replay(self, partitioning: Partitioning | None = None) -> Replay:
        """Simulate the transfer worker by worker, where operands stay that are already in place.

        Args:
            partitioning: The partition to simulate; the best one by default.
        """
        return replay(self.task.model, self.best if partitioning is None else partitioning)

    def explain(self, schemes: Mapping[str, CutAxes] | None = None) -> str:
        """Tables of the vectors and their transfer, compared to other partitions.

        Args:
            schemes: Further partitions by name, as for `along`.
        """
        return parts_text(self.parts(schemes))

    def parts(self, schemes: Mapping[str, CutAxes] | None = None) -> Iterator[Table | str]:
        """The tables and lines of `explain`.

        Args:
            schemes: As for `explain`.
        """
        others = {"even": self.even()} | {name: self.along(scheme) for name, scheme in (schemes or {}).items()}
        yield self._einsums()
        yield self._comparison(others)
        for note in rewriting_notes(self.rewriting) if self.rewriting is not None else ():
            yield f"- {note}"

    __str__ = explain
    __repr__ = explain

    def _searched_among(self, choices: Mapping[str, tuple[Choice, ...]]) -> Partitioning:
        return least_partition(self.task.narrowed(choices), self.workers)

    def _einsums(self) -> Table:
        optimal = "; no other vectors move fewer floats" if self.best.is_optimal else ""
        table = Table(title=f"EinSums cut among {self.workers:,} workers{optimal}", title_justify="left")
        table.add_column("EinSum", overflow="fold")
        table.add_column("pieces")
        for heading in ("calls", "join floats", "aggregate", "repartition"):
            table.add_column(heading, justify="right")
        for step in self.best.steps:
            table.add_row(write_einsum(step.einsum, {}), _write_pieces(step), f"{step.calls:,}", *_floats_of(step))
        totals = map(_write, (self.best.join, self.best.aggregation, self.best.repartition))
        table.add_section()
        table.add_row("all of them", "", "", *totals)
        return table

    def _comparison(self, others: Mapping[str, Partitioning]) -> Table:
        title = "Floats moved at most, beside other partitions, and as replayed"
        table = Table(title=title, title_justify="left", min_width=len(title))
        table.add_column("partition")
        headings = ("at most", "times this", "replayed", "to the busiest", "work of the busiest")
        for heading in headings:
            table.add_column(heading, justify="right")
        for name, partitioning in {"this": self.best, **others}.items():
            simulated = self.replay(partitioning)
            table.add_row(
                name,
                _write(partitioning.floats),
                f"{partitioning.floats / self.floats:.2f}" if self.floats else "-",
                _write(simulated.total.floats),
                _write(float(simulated.total.received.max())),
                f"{simulated.imbalance:.2f} x mean",
            )
        return table


def _write_pieces(step: PartitionedEinSum) -> str:
    return ", ".join(f"{label} {count:,}" for label, count in step.pieces if count > 1) or "whole"


def _floats_of(step: PartitionedEinSum) -> list[str]:
    return [_write(floats) for floats in (step.moved.join, step.moved.aggregation, step.repartition)]


def _write(floats: float) -> str:
    return f"{round(floats):,}" if floats < 1e9 else f"{floats:.4g}"
