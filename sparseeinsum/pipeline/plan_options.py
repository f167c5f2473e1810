"""What users ask of a plan, checked: text and numbers as they are given in, options of planning out."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

from sparseeinsum.decompose.eindecomp.vectors import check_workers
from sparseeinsum.decompose.tiling import TILES
from sparseeinsum.engines.byte_sizes import parse_bytes
from sparseeinsum.errors import PlanError
from sparseeinsum.statistics.estimators import DEFAULT_ESTIMATOR


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a user asks of a plan.

    Attributes:
        optimizer: dp, cover, greedy, relational or dense.
        memory_limit: Bytes that a run may take; the database's own limit by default.
        pin: For some results, exactly the labels to promote in the EinSum that computes them, and their tiles.
        layout: `entries`: outputs come as one number a row, unless promoted by hand; `any`: as they are cheapest.
        outputs: Results to return besides those that nothing reads.
        nonfinite: What to do where values turn NaN or infinite: `error` or `allow`.
        tiles: Tiles of several indices that any label may have; besides them those that inputs are stored in.
        estimator: How sizes of results are estimated: uniform, sketch or exact.
        rewrite: Whether products that several EinSums compute may be computed in another order.
        top: How many plans.
        indexes: Whether operands may be kept in memory and read by index, where the engine can do that.
        workers: Among how many labels are cut; None for a plan of one that knows nothing of others.
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

    @property
    def estimating_bytes(self) -> float:
        """What queries of planning may take at most beside scans of the inputs: all that there is, or nothing."""
        return math.inf if self.estimator == "exact" else 0.0


class PlanningOptions(TypedDict, total=False):
    """What plans and runs are asked alike, by keyword; `Database.plan` says what each means."""

    memory_limit: str | float | None
    pin: Mapping[str, Iterable[str] | Mapping[str, int]] | None
    layout: str
    outputs: Sequence[str]
    nonfinite: str
    tiles: Sequence[int] | str
    estimator: str
    rewrite: bool


def plan_options(
    optimizer: str = "dp",
    top: int = 1,
    indexes: bool = True,
    workers: int | None = None,
    **options: Unpack[PlanningOptions],
) -> PlanOptions:
    """What `Database.plan` is asked, checked.

    Raises:
        PlanError: An option has no such value.
        TypeError: There is no such option.
    """
    unknown = options.keys() - PlanningOptions.__annotations__.keys()
    if unknown:
        known = ", ".join(PlanningOptions.__annotations__)
        raise TypeError(f"there is no option {min(unknown)}; plans take optimizer, {known}")
    if top < 1:
        raise PlanError(f"top is {top}; ask for at least one plan")
    if workers is not None:
        check_workers(workers)
    return PlanOptions(
        optimizer=optimizer,
        memory_limit=_limit(options.get("memory_limit")),
        pin={name: _tiles(name, labels) for name, labels in (options.get("pin") or {}).items()},
        layout=options.get("layout", "entries"),
        outputs=tuple(options.get("outputs", ())),
        nonfinite=options.get("nonfinite", "error"),
        tiles=_sizes(options.get("tiles", ())),
        estimator=options.get("estimator", DEFAULT_ESTIMATOR),
        rewrite=options.get("rewrite", True),
        top=top,
        indexes=indexes,
        workers=workers,
    )


def _limit(memory_limit: str | float | None) -> int | None:
    try:
        return None if memory_limit is None else parse_bytes(memory_limit)
    except ValueError as error:
        raise PlanError(f"memory_limit: {error}") from None


def _sizes(tiles: Sequence[int] | str) -> tuple[int, ...]:
    """Tiles that any label may have."""
    if tiles == "auto":
        return TILES
    if isinstance(tiles, str) or not all(isinstance(tile, int) and tile > 1 for tile in tiles):
        raise PlanError(f"tiles {tiles!r} are neither 'auto' nor whole numbers of indices, each more than 1")
    return tuple(dict.fromkeys(tiles))


def _tiles(name: str, pinned: Iterable[str] | Mapping[str, int]) -> dict[str, int]:
    """Labels to promote, with their tiles."""
    tiles = pinned if isinstance(pinned, Mapping) else dict.fromkeys(pinned, 1)
    for label, tile in tiles.items():
        if not isinstance(tile, int) or tile < 1:
            raise PlanError(
                f"{name} pins {label} with the tile {tile!r}; a tile is a whole number of indices, 1 or more"
            )
    return {label.lower(): tile for label, tile in tiles.items()}
