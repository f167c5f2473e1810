"""Pipeline: checks the options of planning as users write them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict, Unpack

from sparseeinsum.decompose.eindecomp.partition_vectors import check_workers
from sparseeinsum.decompose.tiling import TILES
from sparseeinsum.engines.byte_sizes import parse_bytes
from sparseeinsum.errors import PlanError
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.statistics.estimators import DEFAULT_ESTIMATOR


class PlanningOptions(TypedDict, total=False):
    """Options that `Database.plan`, `run` and `stream` share; `Database.plan` explains them."""

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
    """Check the options of `Database.plan`, and return them.

    Raises:
        PlanError: An option has an invalid value.
        TypeError: There is no such option.
    """
    unknown = options.keys() - PlanningOptions.__annotations__.keys()
    if unknown:
        names = ", ".join(PlanningOptions.__annotations__)
        raise TypeError(f"there is no option {min(unknown)}; plans take optimizer, {names}")
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
