"""Pipeline: checks the options of planning as users write them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict, Unpack

from sparseeinsum.decompose.eindecomp.objectives import SECONDS
from sparseeinsum.decompose.eindecomp.partition_vectors import check_workers
from sparseeinsum.decompose.tiling import TILES
from sparseeinsum.engines.byte_sizes import parse_bytes
from sparseeinsum.errors import ArgumentError, PlanError
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.statistics.estimators import DEFAULT_ESTIMATOR


class PlanningOptions(TypedDict, total=False):
    """Options of `Database.plan`, `run`, `stream`, `prepare` and `iterate`.

    Attributes:
        memory_limit: The bytes that a run may take in addition to those in use, as in `4GB`: aggregation states,
            returned results, and buffers of the database, which get at least 24 MB. Planning and runs lower the
            limit and the threads of the database. A run that needs more than expected is planned again for less.
            By default the limit of the database.
        pin: The labels to promote, by the result whose EinSum promotes exactly those; a mapping gives their
            tiles, as in {"Y": {"i": 64}}.
        layout: `entries` returns one value per row, unless labels are promoted in the program; `any` returns
            results in the cheapest layout.
        outputs: Results to return besides those that no other statement reads.
        nonfinite: `error` ends a run when finite values become NaN or infinite, and names the result. `allow`
            computes with them by IEEE 754; this is slower, because absent entries no longer cancel.
        tiles: Tile sizes that labels may have, besides those of stored tensors: integers greater than 1, or
            `auto` for sizes that fit into caches.
        estimator: How the sizes of results are estimated: `uniform` assumes that entries are spread evenly,
            `sketch` uses the number of entries at every index, and `exact` counts by a query, which can take as
            long as the relational plan.
        rewrite: Whether a cheaper equal formula or another contraction order may compute several statements
            together, if nothing else reads the intermediates. Results differ only by rounding.
    """

    memory_limit: str | float | None
    pin: Mapping[str, Iterable[str] | Mapping[str, int]] | None
    layout: str
    outputs: Sequence[str]
    nonfinite: str
    tiles: Sequence[int] | str
    estimator: str
    rewrite: bool


class PlanArguments(PlanningOptions, total=False):
    """Options of `Database.plan`, which explains those of its own."""

    indexes: bool
    parameters: Mapping[str, Number] | None
    workers: int | None
    objective: str


def plan_options(
    optimizer: str = "dp",
    top: int = 1,
    indexes: bool = True,
    workers: int | None = None,
    objective: str = SECONDS,
    **options: Unpack[PlanningOptions],
) -> PlanOptions:
    """Check the options of `Database.plan`, and return them.

    Raises:
        PlanError: An option has an invalid value.
        ArgumentError: There is no such option.
    """
    unknown = options.keys() - PlanningOptions.__annotations__.keys()
    if unknown:
        names = ", ".join(PlanningOptions.__annotations__)
        raise ArgumentError(f"there is no option {min(unknown)}; plans take optimizer, {names}")
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
        objective=objective,
    )


def _limit(memory_limit: str | float | None) -> int | None:
    try:
        return None if memory_limit is None else parse_bytes(memory_limit)
    except ValueError as error:
        raise PlanError(f"memory_limit: {error}") from None


def _sizes(tiles: Sequence[int] | str) -> tuple[int, ...]:
    """The tile sizes that any label may have."""
    if tiles == "auto":
        return TILES
    if isinstance(tiles, str) or not all(isinstance(tile, int) and tile > 1 for tile in tiles):
        raise PlanError(f"tiles {tiles!r} are neither 'auto' nor whole numbers of indices, each more than 1")
    return tuple(dict.fromkeys(tiles))


def _tiles(name: str, pinned: Iterable[str] | Mapping[str, int]) -> dict[str, int]:
    """The labels to promote in the result `name`, with their tiles."""
    tiles = pinned if isinstance(pinned, Mapping) else dict.fromkeys(pinned, 1)
    for label, tile in tiles.items():
        if not isinstance(tile, int) or tile < 1:
            raise PlanError(
                f"{name} pins {label} with the tile {tile!r}; a tile is a whole number of indices, 1 or more"
            )
    return {label.lower(): tile for label, tile in tiles.items()}
