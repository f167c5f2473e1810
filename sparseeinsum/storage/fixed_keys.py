"""Storage: looks up the natural keys that programs fix, as in A['ann', j]."""

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import DataError, OutdatedPlanError, ShapeError
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.language.index_maps import IndexMap
from sparseeinsum.language.tensors import Dictionary, StoredTensor, Tensor
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.statistics.dictionary_queries import INDEX_COLUMN, KEY_COLUMN, comparable_key, dictionary_table
from sparseeinsum.storage.access_rights import access_to

_MOST_COMPARED = 10_000  # keys among which the nearest one is looked for


def with_known_key(index_map: IndexMap, tensor: Tensor, engine: Engine) -> AffineIndex:
    """The index of a map; if it is a natural key, with its place in the dictionary.

    Args:
        index_map: The map.
        tensor: Its tensor, whose last axis is that which is indexed.
        engine: The database.

    Raises:
        ShapeError: The axis has no natural keys.
        DataError: The dictionary lacks the key.
    """
    index, dictionary = index_map.index, tensor.axes[-1].dictionary
    if index.key is None:
        return index
    axis = index_map.origin or index_map.axis
    if dictionary is None:
        problem = f"{index_map.reader}: {axis.tensor} is read at the key {index}"
        raise ShapeError(f"{problem}, but its axis {axis.axis} has no natural keys; write an index, as in 0")
    position = _index_of(index.key, dictionary, engine)
    if position is None:
        keys = exp.select(_as_text(dictionary)).from_(dictionary_table(dictionary)).order_by(INDEX_COLUMN)
        known = [str(key) for (key,) in engine.rows(keys.limit(_MOST_COMPARED))]
        problem = f"{index_map.reader}: {axis.tensor} is read at the key {index}"
        raise DataError(f"{problem}, which the dictionary {dictionary.name} lacks; {did_you_mean(index.key, known)}")
    return replace(index, offset=position)


def check_fixed_keys(tensors: Iterable[StoredTensor], engine: Engine) -> None:
    """Refuse a plan if a key that it fixes has no longer the index that it had.

    Args:
        tensors: The inputs of the plan.
        engine: The database.

    Raises:
        OutdatedPlanError: Names the key; its dictionary was dropped and made anew.
    """
    for stored in tensors:
        if stored.index is None or stored.index.key is None:
            continue
        dictionary = stored.tensor.axes[-1].dictionary
        assert dictionary is not None
        if _index_of(stored.index.key, dictionary, engine) != stored.index.offset:
            raise OutdatedPlanError(
                f"the key {stored.index} of the dictionary {dictionary.name} has another index than when the plan was "
                "made; plan again"
            )


def _index_of(key: str, dictionary: Dictionary, engine: Engine) -> int | None:
    """The index of a key that is given as text; None if the dictionary lacks it."""
    engine.check_access([access_to(dictionary)])
    same = exp.EQ(this=_as_text(dictionary), expression=comparable_key(exp.Literal.string(key), dictionary))
    rows = engine.rows(exp.select(exp.column(INDEX_COLUMN)).from_(dictionary_table(dictionary)).where(same))
    return int(str(rows[0][0])) if rows else None


def _as_text(dictionary: Dictionary) -> exp.Expr:
    column = exp.column(KEY_COLUMN)
    return column if dictionary.key_type == "TEXT" else exp.cast(column, "text")
