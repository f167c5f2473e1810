"""Rewriting: a network of factors in, the order in which to contract them, two at a time, out.

Orders are compared by expected multiplications and results, in entries that are not the fill; dense sizes alone mislead
where operands are sparse. Few factors are searched exactly; for many, greedy orders and opt_einsum's are improved by
exact searches over parts of the tree. All of it is deterministic: the same network gives the same order.
"""

import bisect
import heapq
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from opt_einsum import paths

from sparseeinsum.rewrite.network import Estimates, Tree

EXACT_FACTORS = 8  # 3,025 pairs of groups: 0.1 s
_REFINED_FACTORS = 6  # 301 pairs
_FEW_FACTORS = 20  # whose trees are refined in parts of EXACT_FACTORS
_MOST_TRIALS = 24
_MOST_JOINS = 20_000  # after which no other greedy order is tried: about 1 s
_CHEAP = 100_000.0  # of multiplications and entries, which take less time than to look for fewer
_MOST_PARTNERS = 12  # of one group, where a label has many holders
_MATTERS = 1e-3  # share of the whole work below which a part of the tree is left as it is
_TEMPERATURES = (1.0, 0.3)
_SHARES = (0.5, 1.0)


def find_order(estimates: Estimates) -> Tree:
    """The cheapest order that is found by these estimates; the cheapest there is for up to EXACT_FACTORS factors."""
    count = len(estimates.network.factors)
    if count <= EXACT_FACTORS:
        return search_exactly(estimates, [1 << position for position in range(count)])
    candidates = [*_opt_einsum_orders(estimates), *_greedy_orders(estimates)]
    for candidate in candidates:
        estimates.visit(candidate)
    best = min(candidates, key=estimates.cost)
    return _refined(estimates, best)


def search_exactly(estimates: Estimates, units: Sequence[int]) -> Tree:
    """The cheapest of all binary trees over some groups, by dynamic programming over their subsets.

    Complexity: 3^n pairs for n groups, outer products included.
    """
    groups = _unions(units)
    costs: dict[int, float] = {1 << position: 0.0 for position in range(len(units))}
    splits: dict[int, tuple[int, int]] = {}
    for subset in range(1, 1 << len(units)):
        if subset in costs or not estimates.is_precise(groups[subset]):
            continue
        best = math.inf
        for first, second in _halves(subset):
            if first not in costs or second not in costs:
                continue
            cost = costs[first] + costs[second] + estimates.join(groups[first], groups[second])
            if cost < best:
                best, splits[subset] = cost, (first, second)
        if best < math.inf:
            costs[subset] = best + estimates.entries(groups[subset])
    return _tree(splits, groups)


def _unions(units: Sequence[int]) -> list[int]:
    """For every subset of some groups, by its bits, their union."""
    groups = [0]
    for unit in units:
        groups.extend([group | unit for group in groups])
    return groups


def _halves(subset: int) -> Iterator[tuple[int, int]]:
    """Every way to part a set in two, each once: the first half has the lowest member."""
    lowest = subset & -subset
    rest = part = subset ^ lowest
    while part:
        yield lowest | (rest ^ part), part
        part = (part - 1) & rest


def _tree(splits: dict[int, tuple[int, int]], groups: list[int]) -> Tree:
    """The tree that the splits of subsets describe, by groups of factors."""
    tree: Tree = {}
    waiting = [len(groups) - 1]
    while waiting:
        subset = waiting.pop()
        if subset in splits:
            first, second = splits[subset]
            tree[groups[subset]] = groups[first], groups[second]
            waiting += [first, second]
    return tree


def _opt_einsum_orders(estimates: Estimates) -> Iterator[Tree]:
    """What opt_einsum proposes for dense factors."""
    network = estimates.network
    inputs = [frozenset(factor.labels) for factor in network.factors]
    sizes = {label: max(bound, 1) for label, bound in network.bounds.items()}
    for search in (paths.auto, paths.greedy):
        tree = tree_of_path(search(inputs, network.output, sizes), len(inputs))
        if all(map(estimates.is_precise, tree)):
            yield tree


def tree_of_path(path: Sequence[Sequence[int]], count: int) -> Tree:
    """A path in opt_einsum's format as a tree; steps of more than two operands are taken from the left."""
    tree: Tree = {}
    waiting = [1 << position for position in range(count)]
    for step in path:
        first, *others = [waiting[position] for position in step]
        waiting = [group for position, group in enumerate(waiting) if position not in step]
        for other in others:
            tree[first | other] = first, other
            first |= other
        waiting.append(first)
    return tree


def path_of_tree(tree: Tree, count: int) -> list[tuple[int, ...]]:
    """A tree as a path in opt_einsum's format: positions of the operands of every step; results go to the end."""
    waiting = [1 << position for position in range(count)]
    path: list[tuple[int, ...]] = []
    for group in steps(tree):
        first, second = sorted(waiting.index(part) for part in tree[group])
        path.append((first, second))
        del waiting[second], waiting[first]
        waiting.append(group)
    return path


def steps(tree: Tree) -> list[int]:
    """The groups of a tree in an order in which they can be computed."""
    return sorted(tree, key=int.bit_count)


def _greedy_orders(estimates: Estimates) -> Iterator[Tree]:
    """Greedy orders: the first by the estimates alone, the others with noise from a fixed seed; until one is cheap."""
    chance = random.Random(0)
    before = estimates.looked_at
    for trial in range(_MOST_TRIALS):
        temperature = _TEMPERATURES[trial // 2 % 2] if trial > 1 else 0.0
        order = _Greedy(estimates, chance, temperature, _SHARES[trial % 2]).order()
        yield order
        if estimates.looked_at - before > _MOST_JOINS or estimates.cost(order) <= _CHEAP:
            return


@dataclass(slots=True)
class _Greedy:
    """Joins again and again the two groups of one label that cost least for what they remove.

    Attributes:
        estimates: Expected sizes.
        chance: Where noise comes from.
        temperature: How much of it.
        share: How much the entries removed count against the work.
    """

    estimates: Estimates
    chance: random.Random
    temperature: float
    share: float
    tree: Tree = field(default_factory=dict)
    alive: set[int] = field(default_factory=set)
    holders: dict[str, set[int]] = field(default_factory=dict)
    queue: list[tuple[float, int, int, int]] = field(default_factory=list)

    def order(self) -> Tree:
        """The tree that comes out."""
        for position in range(len(self.estimates.network.factors)):
            self._enter(1 << position)
        while self.queue:
            _, _, first, second = heapq.heappop(self.queue)
            if first in self.alive and second in self.alive:
                self._join(first, second)
        self._join_rest()
        return self.tree

    def _enter(self, group: int) -> None:
        labels = self.estimates.labels(group)
        partners = set().union(*(self.holders.get(label, ()) for label in labels)) & self.alive
        for partner in heapq.nsmallest(_MOST_PARTNERS, partners, key=lambda each: (self.estimates.entries(each), each)):
            if self.estimates.is_precise(group | partner):
                heapq.heappush(self.queue, (self._score(group, partner), len(self.queue), group, partner))
        self.alive.add(group)
        for label in labels:
            self.holders.setdefault(label, set()).add(group)

    def _score(self, first: int, second: int) -> float:
        estimates = self.estimates
        work = estimates.join(first, second) + estimates.entries(first | second)
        removed = estimates.entries(first) + estimates.entries(second)
        noise = -math.log(self.chance.expovariate(1.0) + 1e-300) * self.temperature if self.temperature else 0.0
        return math.log(work + 1.0) - self.share * math.log(removed + 1.0) - noise

    def _join(self, first: int, second: int) -> None:
        self.estimates.join(first, second)
        self.tree[first | second] = first, second
        self.alive -= {first, second}
        for group in (first, second):
            for label in self.estimates.labels(group):
                self.holders[label].discard(group)
        self._enter(first | second)

    def _join_rest(self) -> None:
        """Outer products of what has no label in common, the smallest first."""
        rest = sorted((self.estimates.entries(group), group) for group in self.alive)
        while len(rest) > 1:
            first, second = self._first_pair([group for _, group in rest])
            rest = [each for each in rest if each[1] not in (first, second)]
            self.estimates.join(first, second)
            self.tree[first | second] = first, second
            bisect.insort(rest, (self.estimates.entries(first | second), first | second))

    def _first_pair(self, groups: list[int]) -> tuple[int, int]:
        pairs = ((first, second) for end, second in enumerate(groups) for first in groups[:end])
        return next(pair for pair in pairs if self.estimates.is_precise(pair[0] | pair[1]))


def _refined(estimates: Estimates, tree: Tree) -> Tree:
    """The tree with every part of it that matters searched exactly, the most expensive first."""
    most = EXACT_FACTORS if len(estimates.network.factors) <= _FEW_FACTORS else _REFINED_FACTORS
    least = estimates.cost(tree) * _MATTERS
    work = {group: estimates.join(*tree[group]) + estimates.entries(group) for group in tree}
    for group in sorted(work, key=lambda each: (-work[each], each)):
        if work[group] < least:
            break
        if group in tree:
            units, inner = _part(estimates, tree, group, most)
            for each in inner:
                del tree[each]
            tree |= search_exactly(estimates, units)
    return tree


def _part(estimates: Estimates, tree: Tree, group: int, most: int) -> tuple[list[int], list[int]]:
    """Groups at the lower end of a part of the tree, the largest opened first; and the groups above them."""
    units, inner = [group], []
    while len(units) < most:
        opened = max((unit for unit in units if unit in tree), key=estimates.entries, default=None)
        if opened is None:
            break
        units.remove(opened)
        units += tree[opened]
        inner.append(opened)
    return units, inner
