"""Storage: the stored tensors of a plan, measured as they are now."""

from collections.abc import Mapping
from contextlib import suppress

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import EngineError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.fingerprints import fingerprints
from sparseeinsum.statistics.measure import Measurement, check_rows, measure
from sparseeinsum.storage.catalogue import check_relation


def measure_all(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, Measurement]:
    """A scan of every tensor.

    Raises:
        CatalogueError: A table is gone.
        DataError: Rows are no tensor; the first such row is named.
    """
    for source in stored.values():
        check_relation(engine, source)
    taken = fingerprints(list(stored.values()), engine)
    found = {}
    for (name, source), fingerprint in zip(stored.items(), taken, strict=True):
        try:
            found[name] = measure(source, engine, fingerprint)
        except EngineError:
            # The error has undone the transaction that this may run in, so that rows are looked at from beside it.
            with suppress(EngineError), engine.beside() as other:
                check_rows(source, other)
            raise
    return found


def identifying_axes(stored: StoredTensor, measured: Measurement) -> frozenset[int]:
    """Axes whose key no two tuples share."""
    distinct, tiles = measured.statistics.distinct, stored.decomposition.tiles
    return frozenset(axis for axis, tile in enumerate(tiles) if tile == 1 and distinct[axis] == measured.tuples)
