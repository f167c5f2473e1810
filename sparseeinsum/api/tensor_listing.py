"""API: the tensors of a database as a table, for people."""

from collections.abc import Iterable, Iterator

from sparseeinsum.language.tensors import StoredTensor

TENSOR_COLUMNS = ("tensor", "shape", "dtype", "fill", "stored as", "in")


def tensor_rows(tensors: Iterable[StoredTensor]) -> Iterator[tuple[str, ...]]:
    """Yield a text for each of TENSOR_COLUMNS, for every tensor."""
    for stored in tensors:
        tensor = stored.tensor
        yield tensor.name, tensor.axes_text, tensor.dtype, str(tensor.fill), stored.notation, stored.relation
