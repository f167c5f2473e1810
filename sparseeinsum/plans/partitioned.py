"""What a program does on several workers, as people see it: its partition vectors, what they move, and other ways."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.eindecomp.baselines import even_choices, named_scheme, scheme_choices
from sparseeinsum.decompose.eindecomp.partitioning import PartitionedEinSum, Partitioning, partition_graph
from sparseeinsum.decompose.eindecomp.replay import Replay, replay
from sparseeinsum.decompose.eindecomp.search import TransferTask, search
from sparseeinsum.language.eingraph import write_einsum

Scheme = Mapping[str, int | str]  # axes along which to cut, by tensor: positions or names

_WIDTH = 140


@dataclass(frozen=True, slots=True)
class PartitionedProgram:
    """A program cut among workers; printed, a table.

    Attributes:
        task: What may be chosen, and the floats that it moves.
        best: What was chosen.
    """

    task: TransferTask
    best: Partitioning

    @property
    def workers(self) -> int:
        """How many there are."""
        return self.best.workers

    @property
    def floats(self) -> float:
        """Floats that are moved at most, if workers have nothing of what they read."""
        return self.best.floats

    @property
    def vectors(self) -> dict[str, dict[str, int]]:
        """For every result the pieces of all labels of the EinSum that computes it."""
        return {step.einsum.output.tensor: dict(step.pieces) for step in self.best.steps}

    def even(self) -> Partitioning:
        """All labels of every EinSum cut alike (SQRT in the EinDecomp paper)."""
        return self._keeping_to(even_choices(self.best.graph, self.workers))

    def along(self, scheme: Scheme) -> Partitioning:
        """Cut along axes of some tensors, as in {"X": 0}: every EinSum that has such an axis into a piece a worker.

        Of EinSums that have several the first of the scheme is cut; those that have none are cut as moves least.

        Args:
            scheme: Axes by tensor, each by its name or its position.

        Raises:
            PlanError: There is no such axis.
        """
        graph = self.best.graph
        return self._keeping_to(scheme_choices(graph, self.workers, named_scheme(graph, scheme)))

    def replay(self, partitioning: Partitioning | None = None) -> Replay:
        """What is really moved, worker by worker, if nothing is sent to where it is.

        Args:
            partitioning: Another than the best.
        """
        model = self.task.model
        sizes = {name: tensor.size for name, tensor in self.best.graph.tensors.items()}
        densities = {
            name: model.floats(name) / size for name, size in sizes.items() if size and name in model.statistics
        }
        return replay(self.best if partitioning is None else partitioning, densities)

    def explain(self, schemes: Mapping[str, Scheme] | None = None) -> str:
        """The vectors and what they move in a table, and other partitions beside them.

        Args:
            schemes: Further partitions by name, as `along` takes them.
        """
        others = {"even": self.even()} | {name: self.along(scheme) for name, scheme in (schemes or {}).items()}
        console = Console(width=_WIDTH, color_system=None, highlight=False, markup=False)
        with console.capture() as captured:
            console.print(self._einsums())
            console.print(self._beside(others))
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    __str__ = explain
    __repr__ = explain

    def _keeping_to(self, choices: Mapping[str, tuple[Choice, ...]]) -> Partitioning:
        task = replace(self.task, choices=choices)
        return partition_graph(task, search(task), self.workers)

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

    def _beside(self, others: Mapping[str, Partitioning]) -> Table:
        title = "Floats moved at most, beside other partitions, and as replayed"
        table = Table(title=title, title_justify="left", min_width=len(title))
        table.add_column("partition")
        headings = ("at most", "times this", "replayed", "to the busiest", "work of the busiest")
        for heading in headings:
            table.add_column(heading, justify="right")
        for name, each in {"this": self.best, **others}.items():
            found = self.replay(each)
            table.add_row(
                name,
                _write(each.floats),
                f"{each.floats / self.floats:.2f}" if self.floats else "-",
                _write(found.total.floats),
                _write(float(found.total.received.max())),
                f"{found.imbalance:.2f} x mean",
            )
        return table


def _write_pieces(step: PartitionedEinSum) -> str:
    return ", ".join(f"{label} {count:,}" for label, count in step.pieces if count > 1) or "whole"


def _floats_of(step: PartitionedEinSum) -> list[str]:
    return [_write(floats) for floats in (step.moved.join, step.moved.aggregation, step.repartition)]


def _write(floats: float) -> str:
    return f"{round(floats):,}" if floats < 1e9 else f"{floats:.4g}"
