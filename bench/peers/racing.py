"""Races: every contender of a workload is checked, then all take turns; the base is the fastest correct peer."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import sparseeinsum as se
from bench.peers.libraries import Library, Run, UnavailableError
from bench.peers.results import entries, of_table, same
from bench.peers.workloads import Workload
from bench.timing import Figure, race

OURS, PREPARED, PLANNING = "sparseeinsum", "prepared", "its planning"
COMPILING_SECONDS = 20.0  # more than any library compiles for a workload


@dataclass(frozen=True)
class Turns:
    """How often contenders run.

    Attributes:
        repeat: Runs of each; the median counts.
        patience: What takes more seconds runs once, after a run to warm up.
        pause: Seconds before each; None is that of all benchmarks.
    """

    repeat: int
    patience: float
    pause: float | None = None


@dataclass(frozen=True)
class Race:
    """The figures of a workload.

    Attributes:
        workload: Its name.
        figures: Those of ours, of a prepared program, of planning, and of the peers; ratios are to the fastest peer.
        unavailable: Why a peer has no figure.
    """

    workload: str
    figures: Sequence[Figure]
    unavailable: Mapping[str, str]

    @property
    def best(self) -> str:
        """The fastest peer; empty if there is none."""
        peers = [figure for figure in self.figures if figure.contender not in (OURS, PREPARED, PLANNING)]
        return min(peers, key=lambda figure: figure.seconds).contender if peers else ""

    def ratio(self, contender: str) -> float:
        """The seconds of a contender by those of the fastest peer."""
        return next(figure.ratio for figure in self.figures if figure.contender == contender)

    def seconds(self, contender: str) -> float | None:
        """The median of a contender, if it has one."""
        return next((figure.seconds for figure in self.figures if figure.contender == contender), None)


def race_workload(workload: Workload, peers: Sequence[Library], threads: int, turns: Turns) -> Race:
    """Check and race all that can do a workload; the first peer that can has the expected result.

    Raises:
        AssertionError: Our result differs from it.
    """
    with ExitStack() as stack:
        runs: dict[str, Run] = {}
        once: dict[str, float] = {}
        unavailable: dict[str, str] = {}
        expected = None
        for peer in peers:
            try:
                run = peer.prepare(workload, stack)
                once[peer.name], result = _timed(run, turns.patience)
            except UnavailableError as error:
                unavailable[peer.name] = str(error)
                continue
            plain = peer.plain(result, workload)
            expected = entries(plain) if expected is None else expected
            if not same(plain, expected):
                del once[peer.name]
                unavailable[peer.name] = "wrong"
                continue
            runs[peer.name] = run
        assert expected is not None, f"no peer computes {workload.name}"
        # Each has a database of its own: runs between those of a prepared program make it look at its tables.
        ours, prepared = (Ours(workload, threads, stack) for _ in range(2))
        own_runs = {OURS: ours.run, PREPARED: prepared.prepared(stack)}
        for name, run in own_runs.items():
            once[name], result = _timed(run, turns.patience)
            assert same(ours.plain(result), expected), f"{workload.name}: the result of {name} differs"
        runs = {**own_runs, PLANNING: ours.plan, **runs}
        figures = _raced(workload.name, runs, once, turns)
    unrated = Race(workload.name, figures, unavailable)
    base = unrated.seconds(unrated.best) or 1.0
    return replace(unrated, figures=[replace(figure, ratio=figure.seconds / base) for figure in figures])


def _raced(name: str, runs: Mapping[str, Run], once: Mapping[str, float], turns: Turns) -> list[Figure]:
    """Figures in the order of the contenders; slow ones have that of their first run."""
    fast = {contender: run for contender, run in runs.items() if once.get(contender, 0) <= turns.patience}
    raced = race(name, fast, dict.fromkeys(fast, turns.repeat), next(iter(fast)), turns.pause)
    figures = {figure.contender: figure for figure in raced}
    for contender in runs:
        if contender not in figures:
            seconds = once[contender]
            figures[contender] = Figure(name, contender, seconds, (seconds,), 1.0)
    return [figures[contender] for contender in runs]


def _timed(run: Run, patience: float) -> tuple[float, object]:
    """Seconds of a run and its result; if it is slow, of a second run, since the first may have compiled something."""
    for _ in range(2):
        start = time.perf_counter()
        result = run()
        seconds = time.perf_counter() - start
        if seconds <= patience or seconds > COMPILING_SECONDS:
            break
    return seconds, result


class Ours:
    """A workload in a database of ours, loaded and planned."""

    def __init__(self, workload: Workload, threads: int, stack: ExitStack) -> None:
        self._workload = workload
        self._database = stack.enter_context(se.connect())
        self._database.connection.execute(f"SET threads = {threads}")
        for name, data in workload.inputs.items():
            self._database.tensor(name, data, fill=workload.fills.get(name, 0))
        self._plan = self.plan()

    @property
    def _layout(self) -> str:
        """Results are as entries, or in the cheapest layout where arrays are asked for."""
        return "entries" if self._workload.form == "entries" else "any"

    def plan(self) -> se.Plan:
        """Plan the program."""
        return self._database.plan(self._workload.program, layout=self._layout)

    def run(self) -> object:
        """Compute an array, an Arrow table of entries, or one with an array in each row."""
        return self._converted(self._database.run(self._plan, replan=False, progress=False))

    def prepared(self, stack: ExitStack) -> Run:
        """The same by a prepared program."""
        step = stack.enter_context(self._database.prepare(self._workload.program, inputs=[], layout=self._layout))
        return lambda: self._converted(step.run())

    def _converted(self, results: Mapping[str, se.TensorResult]) -> object:
        (result,) = results.values()
        forms: dict[str, Callable[[], object]] = {
            "dense": partial(result.to_numpy, copy=False),
            "entries": result.arrow,
            "fibres": lambda: result,
        }
        return forms[self._workload.form]()

    def plain(self, result: object) -> object:
        """The result as `results.entries` takes it."""
        if self._workload.form == "dense":
            return result
        table = result.arrow() if isinstance(result, se.TensorResult) else result
        return of_table(table, self._workload.shape)
