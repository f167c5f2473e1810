"""Kernels: groups of functions in, their object files out: from a folder that keeps them, or compiled now."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from sparseeinsum.errors import KernelsError
from sparseeinsum.kernels.building.assembling import Pieces
from sparseeinsum.kernels.building.cache import forget_older, read_cached
from sparseeinsum.kernels.building.code_generation import exported_names
from sparseeinsum.kernels.building.files import bitcode_path, files_of, object_path, targets_of
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.groups import BATCHES, groups_of

Show = Callable[[int, int], None]  # is told how many files are compiled of how many

_WORKER = "sparseeinsum.kernels.building.worker"
_REPORTED = 2000  # characters of what a process that failed said last


def compile_missing(hosts: Collection[str], targets: Sequence[Target], folder: Path, show: Show) -> None:
    """Compile what a folder lacks for the libraries of some hosts, in several processes at once.

    Raises:
        KernelsError: Compiling failed; the message says why.
        OSError: The folder cannot be written.
    """
    groups = {group.name: group for host in hosts for group in groups_of(host)}
    missing = {
        name: {path.name for path in files_of(group, targets, folder) if read_cached(path) is None}
        for name, group in groups.items()
    }
    waiting = set(chain.from_iterable(missing.values()))
    total = len(waiting)
    if total > 0:
        show(0, total)

    def finish(name: str) -> None:
        waiting.discard(name)
        show(total - len(waiting), total)

    batches = [batch for names in BATCHES if (batch := [name for name in names if missing.get(name)])]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        running = [pool.submit(_run_worker, batch, targets, folder, finish) for batch in batches]
    for worker in running:
        worker.result()
    for path in chain.from_iterable(files_of(groups[name], targets, folder) for name in missing if missing[name]):
        forget_older(path)


def pieces_of(host: str, targets: Sequence[Target], folder: Path) -> Pieces:
    """What the library of a host is linked from, from the folder that `compile_missing` filled.

    Raises:
        KernelsError: Something is not there.
    """
    groups = groups_of(host)
    objects = [object_path(folder, group, target) for group in groups for target in targets_of(group, targets)]
    exported = [exported_names(_present(bitcode_path(folder, group))) for group in groups]
    return Pieces(tuple(targets), tuple(map(_present, objects)), frozenset(chain.from_iterable(exported)))


def _present(path: Path) -> bytes:
    content = read_cached(path)
    if content is None:
        raise KernelsError(f"compiled code is gone or damaged: {path}; try again")
    return content


def _run_worker(groups: Sequence[str], targets: Sequence[Target], folder: Path, finish: Callable[[str], None]) -> None:
    command = [sys.executable, "-m", _WORKER, str(folder), ",".join(groups), *map(str, targets)]
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
            for line in process.stdout or ():
                finish(line.rstrip())
        if process.returncode != 0:
            errors.seek(0)
            said = errors.read().strip()[-_REPORTED:] or f"exit status {process.returncode}"
            raise KernelsError(f"compiling {', '.join(groups)} failed: {said}")
