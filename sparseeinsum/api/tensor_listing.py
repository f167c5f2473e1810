"""API: the tensors of a database as a table, for people."""

from collections.abc import Iterable, Iterator

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.locking import lock_of
from sparseeinsum.errors import SparseEinsumError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.storage.catalogue import Catalogue

TENSOR_COLUMNS = ("tensor", "shape", "dtype", "fill", "stored as", "in")


def listed_tensors(engine: Engine) -> tuple[Iterable[StoredTensor], str]:
    """The tensors that are committed, and a remark if they cannot be listed now; waits for no other call."""
    lock = lock_of(engine.connection)
    if not lock.acquire(blocking=False):
        return (), "busy; its tensors cannot be listed now"
    try:
        with engine.another_connection() as other, other.protected():  # a stream may be open on this one
            tensors = Catalogue(other).all().values()
    except SparseEinsumError as error:
        return (), f"its tensors cannot be listed: {str(error).splitlines()[0]}"
    finally:
        lock.release()
    return tensors, "" if tensors else "no tensors yet"


def tensor_rows(tensors: Iterable[StoredTensor]) -> Iterator[tuple[str, ...]]:
    """Yield a text for each of TENSOR_COLUMNS, for every tensor."""
    for stored in tensors:
        tensor = stored.tensor
        yield tensor.name, tensor.axes_text, tensor.dtype, str(tensor.fill), stored.notation, stored.relation
