"""Races: every contender of a workload is checked, then all take turns; the base is the fastest correct peer."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import sparseeinsum as se
from bench.peers.libraries import Library, Run, UnavailableError
from bench.peers.results import entries, of_table, same
from bench.peers.workloads import Workload
from bench.timing import Figure, race

OURS, PLANNING = "sparseeinsum", "its planning"
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
        figures: Those of ours, of planning, and of the peers; ratios are to the fastest peer.
        unavailable: Why a peer has no figure.
    """

    workload: str
    figures: Sequence[Figure]
    unavailable: Mapping[str, str]

    @property
    def best(self) -> str:
        """The fastest peer; empty if there is none."""
        peers = [figure for figure in self.figures if figure.contender not in (OURS, PLANNING)]
        return min(peers, key=lambda figure: figure.seconds).contender if peers else ""

    @property
    def ratio(self) -> float:
        """Our run by that of the fastest peer."""
        return next(figure.ratio for figure in self.figures if figure.contender == OURS)

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
        ours = Ours(workload, threads, stack)
        once[OURS], result = _timed(ours.run, turns.patience)
        assert expected is not None, f"no peer computes {workload.name}"
        assert same(ours.plain(result), expected), f"{workload.name}: the result of {OURS} differs"
        runs = {OURS: ours.run, PLANNING: ours.plan, **runs}
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

    def plan(self) -> se.Plan:
        """Plan the program: results are as entries, or in the cheapest layout where arrays are asked for."""
        layout = "entries" if self._workload.form == "entries" else "any"
        return self._database.plan(self._workload.program, layout=layout)

    def run(self) -> object:
        """Compute an array, an Arrow table of entries, or one with an array in each row."""
        (result,) = self._database.run(self._plan, replan=False, progress=False).values()
        forms: dict[str, Callable[[], object]] = {
            "dense": result.to_numpy,
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
