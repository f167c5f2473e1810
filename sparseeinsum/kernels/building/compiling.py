"""Kernels: compiles groups of functions to object files in a folder, except those that are already there."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain
from pathlib import Path

from sparseeinsum.errors import KernelsError
from sparseeinsum.kernels.building.assembling import LibraryParts
from sparseeinsum.kernels.building.cache import read_cached, remove_older
from sparseeinsum.kernels.building.code_files import bitcode_path, files_of, object_path, targets_of
from sparseeinsum.kernels.building.code_generation import exported_names
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.groups import GROUPS, groups_of

ShowProgress = Callable[[int, int], None]  # (compiled files, all files to compile)

_WORKER = "sparseeinsum.kernels.building.worker"
_MOST_REPORTED = 2000  # characters from the end of a failed process's output


def compile_missing(hosts: Collection[str], targets: Sequence[Target], folder: Path, show: ShowProgress) -> None:
    """Compile the files that a folder lacks for the libraries of some hosts, in several processes at once.

    Args:
        hosts: Some of HOSTS.
        targets: The processors to compile for.
        folder: The folder of compiled code.
        show: Called with the progress, if there is anything to compile.

    Raises:
        KernelsError: Compiling failed; the message says why.
        OSError: The folder cannot be written.
    """
    needed = {group.name for host in hosts for group in groups_of(host)}
    missing = {
        name: {path.name for path in files_of(group, targets, folder) if read_cached(path) is None}
        for name, group in GROUPS.items()
        if name in needed
    }
    waiting = set(chain.from_iterable(missing.values()))
    total = len(waiting)
    if total > 0:
        show(0, total)

    def finish(name: str) -> None:
        waiting.discard(name)
        show(total - len(waiting), total)

    incomplete = [name for name, files in missing.items() if files]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        running = [pool.submit(_run_worker, name, targets, folder, finish) for name in incomplete]
    for worker in running:
        worker.result()
    for path in chain.from_iterable(files_of(GROUPS[name], targets, folder) for name in incomplete):
        remove_older(path)


def library_parts(host: str, targets: Sequence[Target], folder: Path) -> LibraryParts:
    """Read the parts of a host's library from the folder that `compile_missing` filled.

    Raises:
        KernelsError: A file is missing or damaged.
    """
    groups = groups_of(host)
    objects = [object_path(folder, group, target) for group in groups for target in targets_of(group, targets)]
    exported = chain.from_iterable(_exported_names(bitcode_path(folder, group)) for group in groups)
    return LibraryParts(tuple(targets), tuple(map(_read_required, objects)), frozenset(exported))


@cache  # the name of a file has the digest of what it was made from, and parsing it takes a tenth of a second
def _exported_names(bitcode: Path) -> list[str]:
    return exported_names(_read_required(bitcode))


def _read_required(path: Path) -> bytes:
    content = read_cached(path)
    if content is None:
        raise KernelsError(f"compiled code is gone or damaged: {path}; try again")
    return content


def _run_worker(group: str, targets: Sequence[Target], folder: Path, finish: Callable[[str], None]) -> None:
    command = [sys.executable, "-m", _WORKER, str(folder), group, *map(str, targets)]
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
            for line in process.stdout or ():
                finish(line.rstrip())
        if process.returncode != 0:
            errors.seek(0)
            output = errors.read().strip()[-_MOST_REPORTED:] or f"exit status {process.returncode}"
            raise KernelsError(f"compiling {group} failed: {output}")
