"""Algebra: EinSums that are computed for all entries of a stored matrix at once, as arrays with an element for each.

A chain of EinSums that are computed row by row has the entries of a sparse matrix as its rows, if all else that it
reads are vectors and numbers. If others read its result as entries that are ordered by row in memory, they can read the
matrix in this order, which stays the same from run to run, and the array of the chain's values for its numbers.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sparseeinsum.algebra.chain_leaves import ChainLeaf, Reading
from sparseeinsum.algebra.operators import Compress, Computed, Densify, Relation, Slice, Stack, Stored
from sparseeinsum.algebra.row_chains import RowChain, computed_in, row_chains
from sparseeinsum.algebra.translate import ComputedResult
from sparseeinsum.language.tensors import DEMOTED, Decomposition, fully_promoted
from sparseeinsum.operators.dtypes import is_complex

_DTYPES = ("float64", "float32", "int64")  # of numbers that are ordered by row as they are stored


@dataclass(frozen=True, slots=True)
class EntryChain:
    """EinSums that are computed for all entries of a matrix at once.

    Attributes:
        chain: The EinSums; the first of their leaves is the matrix.
        pattern: The matrix, ordered by row in memory.
        result: The result of the chain as others read it, in the same order.
        vectors: What is read of the other leaves, in their order: vectors as one array each, and numbers.
    """

    chain: RowChain
    pattern: Compress
    result: Compress
    vectors: tuple[Relation, ...]

    @property
    def row_key(self) -> str:
        """The key of the chain that numbers the rows."""
        return self.chain.schema.tensor.axes[self.result.row_axes[0]].name


def entry_chains(definitions: Sequence[ComputedResult], targets: Sequence[Relation]) -> tuple[EntryChain, ...]:
    """The chains whose results products of sparse matrices and single arrays read alone, each in one order.

    Args:
        definitions: The EinSums, in topological order.
        targets: The relations that statements return.
    """
    reading: dict[str, set[Relation]] = defaultdict(set)
    for definition in definitions:
        for operand in definition.relation.inputs:
            for name in computed_in(operand):
                reading[name].add(operand if definition.relation.is_sparse_sum_of_products else definition.relation)
    for target in targets:
        for name in computed_in(target):
            reading[name].add(target)
    read_alone = {name: next(iter(relations)) for name, relations in reading.items() if len(relations) == 1}
    results = {
        name: relation
        for name, relation in read_alone.items()
        if isinstance(relation, Compress) and isinstance(relation.input, Computed)
    }
    if not results:
        return ()
    chains = row_chains(definitions, targets, saves_joins=False)
    candidates = (_entry_chain(chain, results[chain.name]) for chain in chains if chain.name in results)
    return tuple(chain for chain in candidates if chain is not None)


def _entry_chain(chain: RowChain, result: Compress) -> EntryChain | None:
    """The chain over entries whose result is read in an order; None if it cannot be computed so."""
    matrix, *others = chain.leaves
    vectors = [_vector(leaf) for leaf in others]
    if not (_is_matrix(matrix) and _has_two_keys(chain, result)) or any(vector is None for vector in vectors):
        return None
    axes = chain.schema.tensor.axes
    rows, positions = (
        tuple(matrix.keys.index(axes[axis].name) for axis in chosen)
        for chosen in (result.row_axes, result.position_axes)
    )
    pattern = Compress(matrix.relation, rows, positions, matrix.relation.schema.tensor.dtype)
    return EntryChain(chain, pattern, result, tuple(vector for vector in vectors if vector is not None))


def _is_matrix(leaf: ChainLeaf) -> bool:
    """Whether a leaf is a stored matrix of numbers, whose tuples are the rows of the chain."""
    if not isinstance(leaf.relation, Stored) or leaf.reading != Reading.INNER or len(leaf.keys) != len(set(leaf.keys)):
        return False
    source = leaf.relation.source
    is_entries = source.decomposition == fully_promoted(2) and source.tensor.dtype in _DTYPES
    return is_entries and not source.is_query and not source.is_generated


def _has_two_keys(chain: RowChain, result: Compress) -> bool:
    contracts = [link.contract for link in chain.links]
    is_real = not any(
        is_complex(contract.computed_in) or is_complex(contract.schema.tensor.dtype) for contract in contracts
    )
    is_matrix = chain.schema.decomposition == fully_promoted(2)
    return is_real and is_matrix and len(result.row_axes) == len(result.position_axes) == 1


def _vector(leaf: ChainLeaf) -> Relation | None:
    """What is read of a leaf besides the matrix: a vector as one array, or a number; None if it is neither.

    Where a vector lacks tuples, its fill is read: it gives the same result as an absent row.
    """
    relation, rank = leaf.relation, len(leaf.keys)
    schema = relation.schema
    if rank > 1 or schema.decomposition != fully_promoted(rank) or is_complex(schema.tensor.dtype):
        return None
    if leaf.reading == Reading.KEY and not _is_index(relation):
        return None
    if rank == 0:
        return None if leaf.presence else relation
    while isinstance(relation, Densify | Slice):
        relation = relation.input
    whole = Decomposition((DEMOTED,))
    return relation if relation.schema.decomposition == whole else Stack(relation, whole)


def _is_index(relation: Relation) -> bool:
    """Whether a relation is a vector of all indices of an axis."""
    return (
        isinstance(relation, Stored) and relation.source.is_generated and relation.source.value in relation.source.keys
    )
