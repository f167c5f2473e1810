"""Plans: what a user asks of a plan."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparseeinsum.decompose.eindecomp.objectives import OF_PLANS, SECONDS
from sparseeinsum.errors import PlanError
from sparseeinsum.statistics.estimators import DEFAULT_ESTIMATOR


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a user asks of a plan.

    Attributes:
        optimizer: `dp`, `cover`, `greedy`, `relational` or `dense`.
        memory_limit: The bytes that a run may take; None stands for the limit of the database.
        pin: The labels to promote, with their tiles, by the result whose EinSum promotes exactly those.
        layout: `entries` returns outputs with one value per row unless the program says otherwise; `any` returns them
            in the cheapest layout.
        outputs: Results to return besides those that no other EinSum reads.
        nonfinite: `error` ends a run where values become NaN or infinite; `allow` goes on.
        tiles: Tile sizes that any label may have, besides those of the stored inputs.
        estimator: How the statistics of results are estimated: `uniform`, `sketch` or `exact`.
        rewrite: Whether equal formulas and other contraction orders may replace what is written.
        top: The number of plans to return.
        indexes: Whether an operand may stay in memory to be read by index, where the engine supports that.
        workers: The number of workers that labels are cut for; None plans for one.
        objective: What a plan for several workers, or on a cluster, minimises: `seconds` of all together, or the
            `floats` that they send.
        complete: Results that are returned with all their tuples, also those that hold the fill.
        searches_all: Whether the search looks at all choices even if that takes longer than a run: for plans that run
            often.
        changing: Names of inputs that have other values in every run, of a plan that runs often: what it puts into
            memory of its other stored inputs stays there. None for a plan that may run once or often: half of such
            loads are priced.

    Raises:
        PlanError: `nonfinite`, `layout` or `objective` is none of its values.
    """

    optimizer: str = "dp"
    memory_limit: int | None = None
    pin: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    layout: str = "entries"
    outputs: tuple[str, ...] = ()
    nonfinite: str = "error"
    tiles: tuple[int, ...] = ()
    estimator: str = DEFAULT_ESTIMATOR
    rewrite: bool = True
    top: int = 1
    indexes: bool = True
    workers: int | None = None
    objective: str = SECONDS
    complete: frozenset[str] = frozenset()
    searches_all: bool = False
    changing: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.nonfinite not in ("error", "allow"):
            raise PlanError(f"nonfinite {self.nonfinite!r} is neither 'error' nor 'allow'")
        if self.layout not in ("entries", "any"):
            raise PlanError(f"layout {self.layout!r} is neither 'entries' nor 'any'")
        if self.objective not in OF_PLANS:
            raise PlanError(f"objective {self.objective!r} is neither 'seconds' nor 'floats'")

    @property
    def estimating_bytes(self) -> float:
        """The most bytes that queries of planning take besides scans of the inputs: `exact` may take any number."""
        return math.inf if self.estimator == "exact" else 0.0

    @property
    def allows_nonfinite(self) -> bool:
        """Whether a run goes on where values become NaN or infinite."""
        return self.nonfinite == "allow"
