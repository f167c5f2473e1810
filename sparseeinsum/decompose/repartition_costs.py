"""Decompose: the cost of repartitions of the tensors of a graph."""

from dataclasses import dataclass, field, replace

from sparseeinsum.decompose.choice import Choice, is_single_array
from sparseeinsum.decompose.cost import ONE_ROW_OPERATOR, Accounting, CostConstants, RepartitionSizes, Work
from sparseeinsum.decompose.graph_sizes import GraphSizes
from sparseeinsum.decompose.memory_footprint import RunMemory, vector_bytes
from sparseeinsum.decompose.repartitions import Repartition, RepartitionOptions, is_shared_array
from sparseeinsum.decompose.staying_operands import NOTHING_STAYS, StayingOperands
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.tensors import DEMOTED, Decomposition, are_one_array, array_bytes, common_tile, count_keys

_NO_REPARTITION = Repartition(Work())
_READING = Work(operators=ONE_ROW_OPERATOR)  # of an array that is in memory


@dataclass(frozen=True, slots=True)
class RepartitionCosts:
    """Costs of repartitions on one engine.

    Attributes:
        graph: The EinSums.
        sizes: The sizes of their tensors.
        constants: Seconds of elementary work.
        accounting: Counts the work that the engine does.
        memory: The memory limit of a run; repartitions that would exceed it are priced in passes.
        in_one_row: The names of results that several read, and that a statement computes in one row with others if they
            have no keys.
        staying: The stored tensors of which single arrays stay in memory from run to run, if they are not larger than
            `kept_bytes`.
        kept_bytes: The most bytes that stay.
        has_handles: Whether functions read arrays by handles, which copies those of a table; if not, they read values.
        keeps_arrays: Whether a statement puts arrays of many rows together in memory, and reads them there.
    """

    graph: EinGraph
    sizes: GraphSizes
    constants: CostConstants
    accounting: Accounting
    memory: RunMemory
    in_one_row: frozenset[str] = frozenset()
    staying: StayingOperands = NOTHING_STAYS
    kept_bytes: float = 0.0
    has_handles: bool = True
    keeps_arrays: bool = False
    _known: dict[tuple[object, ...], Repartition] = field(default_factory=dict, init=False, repr=False)
    _known_seconds: dict[tuple[int, bool, float, Choice, Choice, int], float] = field(
        default_factory=dict, init=False, repr=False
    )

    def work(self, tensor: str, before: Choice, after: Choice) -> Work:
        """Work of a repartition from the tiles `before` to the tiles `after`, without passes."""
        if before == after:
            return Work()
        return self.accounting.repartition(self._change(tensor, before, after))

    def cheapest(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> Repartition:
        """The cheapest repartition of a tensor within the memory limit, if its result is read `reads` times.

        It is the same for tensors of one kind whose axes have the same names, of which passes name one.
        """
        if before == after:
            return _NO_REPARTITION
        names = tuple([axis.name for axis in self.graph.tensors[tensor].axes])
        key = (
            self.sizes.kind(tensor),
            tensor in self.in_one_row,
            self.staying.loads_of(tensor),
            names,
            before,
            after,
            reads,
        )
        repartition = self._known.get(key)
        if repartition is None:
            repartition = self._known[key] = self._cheapest(tensor, before, after, reads)
        return repartition

    def _loads(self, tensor: str, tiles: Choice) -> float:
        """How often a run puts a tensor in these tiles into memory, on average."""
        stays = is_single_array(tiles) and self.sizes.tuple_bytes(tensor, tiles) <= self.kept_bytes
        return self.staying.loads_of(tensor) if stays else 1.0

    def _cheapest(self, tensor: str, before: Choice, after: Choice, reads: int) -> Repartition:
        schema = self.graph.tensors[tensor]
        keys = {
            axis.name: count_keys(tile, axis.bound)
            for axis, tile in zip(schema.axes, after, strict=True)
            if tile != DEMOTED
        }
        change = self._change(tensor, before, after)
        bytes_by_tiles = {
            tiles: vector_bytes(
                self.sizes.tuples(tensor, tiles), array_bytes(schema, Decomposition(tiles)), self.memory
            )
            for tiles in (before, tuple(map(common_tile, before, after)), after)
            if any(tile != 1 for tile in tiles)  # vectors of numbers are small
        }
        total = sum(bytes_by_tiles.values())
        work = self.accounting.repartition(change)
        options = RepartitionOptions(change, work, keys, total, total - bytes_by_tiles.get(before, 0))
        repartition = options.cheapest(self.memory, self.constants, reads)
        loads = self._loads(tensor, after)
        if loads == 1 or repartition.passes is not None:
            return repartition
        return replace(repartition, work=repartition.work.times(loads) + _READING)

    def _change(self, tensor: str, before: Choice, after: Choice) -> RepartitionSizes:
        between = tuple(map(common_tile, before, after))
        is_scanned = self.has_handles and is_single_array(after)  # else by what reads the parts
        return RepartitionSizes(
            before=self.sizes.tuples(tensor, before),
            parts=self._cut_parts(tensor, before, between),
            between=self.sizes.tuples(tensor, between),
            after=self.sizes.tuples(tensor, after),
            between_bytes=self.sizes.tuple_bytes(tensor, between),
            after_bytes=self.sizes.tuple_bytes(tensor, after),
            slices=between != before,
            stacks=between != after,
            stored_bytes=self._row_bytes(tensor, before),
            is_in_memory=is_single_array(after) and self._can_be_kept(tensor, between),
            scanned_bytes=self.sizes.stored_bytes(tensor, before) if is_scanned else 0.0,
            are_values=not self.has_handles,
        )

    def _can_be_kept(self, tensor: str, tiles: Choice) -> bool:
        """Whether a statement puts all arrays in these tiles together in memory."""
        schema = self.graph.tensors[tensor]
        return self.keeps_arrays and is_shared_array(schema) and are_one_array(schema, Decomposition(tiles))

    def _row_bytes(self, tensor: str, tiles: Choice) -> float:
        """Bytes of a result that a statement computes in one row with its other readers; 0 for all others."""
        is_whole = tensor in self.in_one_row and is_single_array(tiles)
        return self.sizes.tuple_bytes(tensor, tiles) if is_whole else 0.0

    def price_key(self, tensor: str, tiles: Choice) -> tuple[float, ...]:
        """What the cost of a repartition depends on, of the tiles before, between or afterwards."""
        shape = self.graph.tensors[tensor].shape
        keys = [count_keys(tile, bound) for tile, bound in zip(tiles, shape, strict=True) if tile != DEMOTED]
        is_number = all(tile == 1 for tile in tiles)
        sizes = self.sizes.of(tensor, tiles)
        row_bytes = self._row_bytes(tensor, tiles)
        return (
            sizes.tuples,
            sizes.tuple_bytes,
            self.sizes.mean_size(tensor, tiles),
            max(keys, default=0),
            is_number,
            row_bytes,
            self._loads(tensor, tiles),
            self._can_be_kept(tensor, tiles),
        )

    def seconds(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> float:
        """Seconds of a repartition whose result is read `reads` times; infinite if the memory limit is not enough."""
        loads = self.staying.loads_of(tensor)
        key = self.sizes.kind(tensor), tensor in self.in_one_row, loads, before, after, reads
        seconds = self._known_seconds.get(key)
        if seconds is None:
            seconds = self.cheapest(tensor, before, after, reads).seconds(self.constants)
            self._known_seconds[key] = seconds
        return seconds

    def _cut_parts(self, tensor: str, before: Choice, between: Choice) -> float:
        """Tuples that arrays are cut into, including those that hold only the fill; none if a bound is 0."""
        size = self.sizes.mean_size(tensor, between)
        return self.sizes.tuples(tensor, before) * self.sizes.mean_size(tensor, before) / size if size else 0.0
