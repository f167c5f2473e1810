"""Decompose: the memory that an EinSum takes under a choice, and the passes that keep it within the memory limit.

Arrays that a kernel reads or returns exist for a vector of rows on every thread. Aggregation states exist for all
groups at once, and the engine cannot spill them. In passes, an EinSum computes its result for one range of the keys of
a promoted label after another, and reads its operands again for each.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.language.tensors import StoredTensor, array_bytes, count_keys, tuple_bytes


@dataclass(frozen=True, slots=True)
class Margins:
    """Factors from expected bytes to the bytes that must be available (measured: bench/memory.py).

    Attributes:
        vectors: For arrays in vectors.
        states: For aggregation states.
        together: For aggregation states that share a statement with others.
    """

    vectors: float
    states: float
    together: float


# If the limit is for the whole process, and the engine gets what remains of it.
PROCESS_MARGINS = Margins(vectors=2, states=1.5, together=8)
# If the engine may take the whole limit for itself; it does not count states.
ENGINE_MARGINS = Margins(vectors=3, states=4, together=16)
# A scan is split among threads only if the limit for plans is so many times the memory that such a scan takes.
SPLITS_LIMIT = 8
# Memory of the process that an engine in it cannot use: wasted by allocators, or taken by threads and statements even
# if they compute little (measured: bench/memory.py).
_WASTED_SHARE = 0.1
_WASTED_BYTES = 10_000_000
# A database in this process gets at least so much for its buffers, however low the limit is: with less, hash tables
# cannot spill.
LEAST_BUFFER_BYTES = 24_000_000
# The limit of a process must have so many bytes for every thread, which needs vectors and buffers of its own.
_BYTES_PER_THREAD = 64_000_000

# Cost of reading a byte again in another pass, relative to moving one in a repartition (measured: bench/passes.py).
REREAD_BYTES = 0.1

STATE_OVERHEAD_BYTES = 96  # of one state in addition to its array: its row in the hash table, and malloc's overhead
_MOST_PASSES = 1024


@dataclass(frozen=True, slots=True)
class RunMemory:
    """The memory that a run may take, and how its engine uses memory.

    Attributes:
        total_bytes: The limit for everything that the run adds.
        threads: Threads that run a statement.
        vector_rows: Rows of the vectors that the engine passes to functions.
        thread_rows: Rows of a table that one thread reads before another takes part.
        covers_process: Whether the limit is for the whole process, including its engine and what allocators waste.
        spills_states: Whether the engine spills aggregation states beyond the memory that a statement may take.
        planned_share: The share of the limit that plans use; lowered after a statement has taken more than expected.
    """

    total_bytes: float
    threads: int
    vector_rows: int
    thread_rows: int = 1
    covers_process: bool = False
    spills_states: bool = False
    planned_share: float = 1.0

    @property
    def margins(self) -> Margins:
        """Factors from expected bytes to the bytes that must be available."""
        return PROCESS_MARGINS if self.covers_process else ENGINE_MARGINS

    def rows(self, tuples: float) -> int:
        """Rows that are in vectors at once, on all threads that read so many tuples."""
        return min(self.threads, max(math.ceil(tuples / self.thread_rows), 1)) * self.vector_rows

    @property
    def available_bytes(self) -> float:
        """The part of the limit that vectors, states and buffers can use."""
        return self.total_bytes * (1 - _WASTED_SHARE) - _WASTED_BYTES if self.covers_process else self.total_bytes

    @property
    def limit_bytes(self) -> float:
        """The limit that plans keep to."""
        return self.available_bytes * self.planned_share

    @property
    def largest_relation_bytes(self) -> float:
        """The largest relation that a statement may hold, which the engine cannot spill; larger ones get tables."""
        return self.limit_bytes / self.margins.together if self.covers_process else math.inf

    @property
    def largest_row_bytes(self) -> float:
        """The most bytes of arrays that a statement computes in one row, all of which are in memory together."""
        return self.limit_bytes / 16

    @property
    def largest_arrays_bytes(self) -> float:
        """The most bytes of single arrays, whose sizes are certain, that a server's process reads and computes at once.

        An engine in this process has `largest_row_bytes`.
        """
        return self.limit_bytes / self.margins.states if self.spills_states else math.inf

    def least_buffer_bytes(self, kept_bytes: float) -> float:
        """Bytes of buffers that the engine needs, if it keeps so much in tables and hash tables."""
        return min(kept_bytes, LEAST_BUFFER_BYTES) * self.planned_share if self.covers_process else 0.0

    def needed_bytes(self, vector_bytes: float, states_bytes: float, kept_bytes: float) -> float:
        """The memory limit that is enough for a statement.

        Args:
            vector_bytes: Bytes of the vectors of rows that operators pass on.
            states_bytes: Bytes of the states of aggregates.
            kept_bytes: Bytes of tables and hash tables.
        """
        together = vector_bytes + self.margins.states * states_bytes + self.least_buffer_bytes(kept_bytes)
        return max(self.margins.vectors * vector_bytes, together)

    def total_bytes_for(self, limit_bytes: float) -> int:
        """The `total_bytes` that are needed for plans to have a limit of `limit_bytes`."""
        total = (limit_bytes + _WASTED_BYTES) / (1 - _WASTED_SHARE) if self.covers_process else limit_bytes
        return math.ceil(total)


def threads_within(limit_bytes: float, threads: int) -> int:
    """The number of threads, at most `threads` and at least 1, that a memory limit of the process is enough for."""
    return max(min(threads, math.floor(limit_bytes / _BYTES_PER_THREAD)), 1)


UNLIMITED = RunMemory(math.inf, threads=1, vector_rows=1)


@dataclass(frozen=True, slots=True)
class Passes:
    """A number of passes, each over a range of the keys of one label."""

    label: str
    count: int


def vector_bytes(tuples: float, size_bytes: int, memory: RunMemory) -> int:
    """Bytes of all arrays in vectors at once, for so many tuples with arrays of `size_bytes`.

    They are a power of 2, because the engine doubles the buffers of lists.
    """
    return 1 << (math.ceil(min(max(tuples, 1), memory.rows(tuples))) * size_bytes - 1).bit_length()


def scan_needed_bytes(stored: StoredTensor, memory: RunMemory) -> int:
    """The memory limit that is enough to read a tensor as it is stored; 0 if its tuples hold numbers."""
    tiles, shape = stored.decomposition.tiles, stored.tensor.shape
    if all(tile == 1 for tile in tiles):  # vectors of numbers are small
        return 0
    tuples = math.prod(map(count_keys, tiles, shape))
    return math.ceil(memory.margins.vectors * _scanned_bytes(tuples, stored, memory))


def _scanned_bytes(tuples: float, stored: StoredTensor, memory: RunMemory) -> int:
    return vector_bytes(tuples, array_bytes(stored.tensor, stored.decomposition), memory)


def scanning_bytes(stored: StoredTensor) -> float:
    """An upper bound of the memory of a scan that counts keys: hash tables of all possible tuples, and their arrays."""
    tuples = math.prod(map(count_keys, stored.decomposition.tiles, stored.tensor.shape))
    return tuples * (tuple_bytes(stored.tensor, stored.decomposition) + STATE_OVERHEAD_BYTES)


def split_scan_bytes(stored: StoredTensor, memory: RunMemory) -> int:
    """Bytes of the arrays in vectors if every thread reads a part of a stored tensor, in vectors of full size."""
    tiles, shape = stored.decomposition.tiles, stored.tensor.shape
    tuples = min(math.prod(map(count_keys, tiles, shape)), memory.vector_rows)
    return memory.threads * _scanned_bytes(tuples, stored, memory)


@dataclass(frozen=True, slots=True)
class KernelArrays:
    """The arrays of one operand, or of the result, that kernels read or return.

    Attributes:
        keys: Number of keys of every promoted label.
        size_bytes: Bytes of one array.
    """

    keys: Mapping[str, int]
    size_bytes: int

    def vector_bytes(self, memory: RunMemory, passes: Passes | None = None) -> int:
        """Bytes of the arrays that are in vectors at once."""
        counts = (max(_per_pass(keys, label, passes), 1) for label, keys in self.keys.items())
        return vector_bytes(math.prod(counts), self.size_bytes, memory)


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory that an EinSum takes under a choice.

    Attributes:
        read: Arrays of the operands. A scan holds the arrays of all rows of a vector, whichever pass they belong to.
        returned: Arrays that calls of the kernel return; none if it adds to states in place.
        states: Aggregation states that one thread may have.
        all_states: Aggregation states that all threads together can have.
        state_bytes: Bytes of the array of a state; 0 if the engine keeps the states itself, and can spill them.
        resident_bytes: Bytes of the operands that are kept in memory, of all threads together.
        divided_bytes: Those of them that passes over a label divide, by label: of entries that are ordered by row.
        kept_bytes: Bytes of the operands and the result in tables and hash tables.
        keys: Number of keys of every promoted label of the result.
    """

    read: tuple[KernelArrays, ...]
    returned: tuple[KernelArrays, ...]
    states: float
    all_states: float
    state_bytes: int
    resident_bytes: int
    divided_bytes: Mapping[str, int]
    kept_bytes: float
    keys: Mapping[str, int]

    def vector_bytes(self, memory: RunMemory, passes: Passes | None = None) -> int:
        """Bytes of the arrays that kernels read and return at once, on all threads."""
        read = sum(arrays.vector_bytes(memory) for arrays in self.read)
        return read + self.returned_bytes(memory, passes)

    def returned_bytes(self, memory: RunMemory, passes: Passes | None = None) -> int:
        """Bytes of the arrays that calls of the kernel return at once, on all threads."""
        return sum(arrays.vector_bytes(memory, passes) for arrays in self.returned)

    def states_bytes(self, memory: RunMemory, passes: Passes | None = None) -> float:
        """Bytes of operands in memory, and of states that the engine cannot spill: each thread may have all groups."""
        resident, share = float(self.resident_bytes), 1.0
        if passes is not None:
            keys = self.keys[passes.label]
            share = _per_pass(keys, passes.label, passes) / keys
            resident -= self.divided_bytes.get(passes.label, 0) * (1 - share)
        states = min(memory.threads * self.states, self.all_states) * share
        return resident + states * (self.state_bytes + STATE_OVERHEAD_BYTES) if self.state_bytes else resident

    def needed_bytes(self, memory: RunMemory, passes: Passes | None = None) -> float:
        """The memory limit that is enough."""
        return memory.needed_bytes(
            self.vector_bytes(memory, passes), self.states_bytes(memory, passes), self.kept_bytes
        )

    def possible_passes(self, memory: RunMemory) -> list[Passes]:
        """For every label with several keys, the fewest passes within the memory limit, or the most if none are."""
        candidates = (self._fewest_passes(label, memory) for label in self.keys)
        return [passes for passes in candidates if passes is not None]

    def _fewest_passes(self, label: str, memory: RunMemory) -> Passes | None:
        most = min(self.keys[label], _MOST_PASSES)
        for count in (2**power for power in range(1, most.bit_length())):
            passes = Passes(label, count)
            if self.needed_bytes(memory, passes) <= memory.limit_bytes:
                return passes
        return Passes(label, most) if most > 1 else None


def _per_pass(keys: int, label: str, passes: Passes | None) -> int:
    return keys if passes is None or passes.label != label else -(-keys // passes.count)
