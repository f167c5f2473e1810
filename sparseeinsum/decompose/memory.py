"""Decompose: what an EinSum takes of the memory under a choice, and in how many passes it keeps to its share.

Arrays that a kernel is handed or returns exist for a vector of rows on every thread; aggregation states exist for all
groups at once, and the engine cannot spill them. In passes, an EinSum computes one range of the keys of a promoted
label of its result after the other, and reads its operands anew for each.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.language.tensors import StoredTensor, array_bytes, count_keys, tuple_bytes


@dataclass(frozen=True, slots=True)
class Margins:
    """How much memory must be there for how much that is expected (measured: bench/memory.py).

    Attributes:
        vectors: For a byte of arrays in vectors.
        states: For a byte of aggregation states.
        together: For a byte of states that share a statement with others.
    """

    vectors: float
    states: float
    together: float


# Where the engine is left what remains of a limit.
OF_PROCESS = Margins(vectors=2, states=1.5, together=8)
# Where it may take all of a limit for itself, and counts no states.
OF_ENGINE = Margins(vectors=3, states=4, together=16)
# What is planned with must be so many times what a scan takes that is split among threads.
SPLITS_LIMIT = 8
# Of the memory of a process that an engine runs in: by allocators, and by threads and statements, however little they
# compute (measured: bench/memory.py).
_WASTED_SHARE = 0.1
_WASTED_BYTES = 10_000_000
# What a database in this process gets for its buffers however low a limit is: below it, hash tables cannot spill.
LEAST_BUFFER_BYTES = 24_000_000
# A process has as many threads as its limit gives so many bytes each: they need vectors and buffers of their own.
_BYTES_PER_THREAD = 64_000_000

# Part of moving a byte in a repartition, to read one again in another pass (measured: bench/passes.py).
REREAD_BYTES = 0.1

STATE_OVERHEAD_BYTES = 96  # of one state beside its array: its row in the hash table, and what malloc adds
_MOST_PASSES = 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """What a run may take.

    Attributes:
        given_bytes: The limit, of everything that is not there before.
        threads: That the engine runs statements with.
        vector_rows: That it hands to a function at once.
        thread_rows: Of a table, that one thread reads before another takes part.
        is_of_process: Whether the limit is for all that a process takes, the engine in it and what is wasted, too.
        spills_states: Whether it keeps aggregation states to the memory that a statement may take.
        planned_share: Of what a run may take, what plans use; less where a statement has taken more than expected.
    """

    given_bytes: float
    threads: int
    vector_rows: int
    thread_rows: int = 1
    is_of_process: bool = False
    spills_states: bool = False
    planned_share: float = 1.0

    @property
    def margins(self) -> Margins:
        """How much must be there for how much that is expected."""
        return OF_PROCESS if self.is_of_process else OF_ENGINE

    def rows(self, tuples: float) -> int:
        """That are in vectors at once, on all threads that read so many tuples."""
        return min(self.threads, max(math.ceil(tuples / self.thread_rows), 1)) * self.vector_rows

    @property
    def available_bytes(self) -> float:
        """Of what may be taken, what is left for vectors, states and buffers."""
        return self.given_bytes * (1 - _WASTED_SHARE) - _WASTED_BYTES if self.is_of_process else self.given_bytes

    @property
    def limit_bytes(self) -> float:
        """What can be planned with."""
        return self.available_bytes * self.planned_share

    @property
    def most_held_bytes(self) -> float:
        """Of a relation that a statement may hold whole, which the engine cannot spill; larger ones get tables."""
        return self.limit_bytes / self.margins.together if self.is_of_process else math.inf

    def least_buffer_bytes(self, kept_bytes: float) -> float:
        """What the engine needs for its buffers, if it keeps so much in tables and hash tables."""
        return min(kept_bytes, LEAST_BUFFER_BYTES) * self.planned_share if self.is_of_process else 0.0

    def needed_bytes(self, vector_bytes: float, states_bytes: float, kept_bytes: float) -> float:
        """The limit that is enough for arrays in vectors and in states, and for what is kept in tables."""
        together = vector_bytes + self.margins.states * states_bytes + self.least_buffer_bytes(kept_bytes)
        return max(self.margins.vectors * vector_bytes, together)

    def given_for(self, limit_bytes: float) -> int:
        """What must be given, so that so much can be planned with."""
        given = (limit_bytes + _WASTED_BYTES) / (1 - _WASTED_SHARE) if self.is_of_process else limit_bytes
        return math.ceil(given)


def threads_within(limit_bytes: float, threads: int) -> int:
    """Of the threads of an engine in this process those that a memory limit is enough for; one at least."""
    return max(min(threads, math.floor(limit_bytes / _BYTES_PER_THREAD)), 1)


UNLIMITED = Memory(math.inf, threads=1, vector_rows=1)


@dataclass(frozen=True, slots=True)
class Passes:
    """An EinSum is computed in so many passes, each over a range of the keys of one label."""

    label: str
    count: int


def vector_bytes(tuples: float, size_bytes: int, memory: Memory) -> int:
    """Bytes that arrays in vectors take at once: a power of 2, as lists grow."""
    return 1 << (math.ceil(min(max(tuples, 1), memory.rows(tuples))) * size_bytes - 1).bit_length()


def scan_needed_bytes(stored: StoredTensor, memory: Memory) -> int:
    """The memory limit that is enough to read a tensor as it is stored; 0 where its tuples hold numbers."""
    tiles, shape = stored.decomposition.tiles, stored.tensor.shape
    if all(tile == 1 for tile in tiles):  # vectors of numbers are small
        return 0
    tuples = math.prod(map(count_keys, tiles, shape))
    return math.ceil(memory.margins.vectors * _scanned_bytes(tuples, stored, memory))


def _scanned_bytes(tuples: float, stored: StoredTensor, memory: Memory) -> int:
    return vector_bytes(tuples, array_bytes(stored.tensor, stored.decomposition), memory)


def scanning_bytes(stored: StoredTensor) -> float:
    """What a scan that counts keys takes at most: hash tables of every tuple that there can be, and arrays."""
    tuples = math.prod(map(count_keys, stored.decomposition.tiles, stored.tensor.shape))
    return tuples * (tuple_bytes(stored.tensor, stored.decomposition) + STATE_OVERHEAD_BYTES)


def split_scan_bytes(stored: StoredTensor, memory: Memory) -> int:
    """Bytes of the arrays in vectors if every thread reads a part of a stored tensor: of whole vectors, even so."""
    tiles, shape = stored.decomposition.tiles, stored.tensor.shape
    tuples = min(math.prod(map(count_keys, tiles, shape)), memory.vector_rows)
    return memory.threads * _scanned_bytes(tuples, stored, memory)


@dataclass(frozen=True, slots=True)
class Arrays:
    """Arrays of one operand, or of the result, that kernels see.

    Attributes:
        keys: How many there are of every promoted label.
        size_bytes: Of one array.
    """

    keys: Mapping[str, int]
    size_bytes: int

    def vector_bytes(self, memory: Memory, passes: Passes | None = None) -> int:
        """Bytes of those that are there at once."""
        counts = (max(_per_pass(keys, label, passes), 1) for label, keys in self.keys.items())
        return vector_bytes(math.prod(counts), self.size_bytes, memory)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What an EinSum takes of the memory under a choice.

    Attributes:
        read: Arrays of the operands. A scan holds those of all rows of a vector, of whichever pass they are.
        returned: Arrays that calls of the kernel return; none where it adds to states in place.
        states: Aggregation states that one thread may have.
        all_states: Those that all threads can have together.
        state_bytes: Of the array in one; 0 where the engine keeps the states itself, and can spill them.
        resident_bytes: Of an operand that is kept in memory, of which every thread may put one together.
        kept_bytes: Of operands and of the result, in tables and hash tables.
        keys: Of every promoted label of the result, how many there are.
    """

    read: tuple[Arrays, ...]
    returned: tuple[Arrays, ...]
    states: float
    all_states: float
    state_bytes: int
    resident_bytes: int
    kept_bytes: float
    keys: Mapping[str, int]

    def vector_bytes(self, memory: Memory, passes: Passes | None = None) -> int:
        """Bytes of the arrays that kernels see at once, on all threads."""
        read = sum(each.vector_bytes(memory) for each in self.read)
        return read + self.returned_bytes(memory, passes)

    def returned_bytes(self, memory: Memory, passes: Passes | None = None) -> int:
        """Bytes of those of them that calls of the kernel return."""
        return sum(each.vector_bytes(memory, passes) for each in self.returned)

    def states_bytes(self, memory: Memory, passes: Passes | None = None) -> float:
        """Bytes of all aggregation states that the engine cannot spill: every thread may have one of each group."""
        kept = memory.threads * self.resident_bytes
        if not self.state_bytes:
            return kept
        states = min(memory.threads * self.states, self.all_states)
        if passes is not None:
            keys = self.keys[passes.label]
            states *= _per_pass(keys, passes.label, passes) / keys
        return kept + states * (self.state_bytes + STATE_OVERHEAD_BYTES)

    def needed_bytes(self, memory: Memory, passes: Passes | None = None) -> float:
        """The limit that is enough."""
        return memory.needed_bytes(
            self.vector_bytes(memory, passes), self.states_bytes(memory, passes), self.kept_bytes
        )

    def ways(self, memory: Memory) -> list[Passes]:
        """For every label the fewest passes that keep to the memory; where none do, the most."""
        return [found for label in self.keys if (found := self._fewest(label, memory)) is not None]

    def _fewest(self, label: str, memory: Memory) -> Passes | None:
        most = min(self.keys[label], _MOST_PASSES)
        for count in (2**power for power in range(1, most.bit_length())):
            passes = Passes(label, count)
            if self.needed_bytes(memory, passes) <= memory.limit_bytes:
                return passes
        return Passes(label, most) if most > 1 else None


def _per_pass(keys: int, label: str, passes: Passes | None) -> int:
    return keys if passes is None or passes.label != label else -(-keys // passes.count)
