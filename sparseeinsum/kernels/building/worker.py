"""Kernels: a process that compiles some groups, so that the compiler's memory goes when it is done.

`python -m sparseeinsum.kernels.building.worker FOLDER GROUPS TARGET...` leaves in the folder what is not there yet, and
prints the name of each file that is there.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparseeinsum.kernels.building.cache import keep, read_cached
from sparseeinsum.kernels.building.code_generation import object_of_group
from sparseeinsum.kernels.building.files import bitcode_path, object_path, targets_of
from sparseeinsum.kernels.building.frontend import compile_group
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.groups import GROUPS
from sparseeinsum.kernels.platforms import PLATFORMS


def compile_groups(folder: Path, groups: Sequence[str], targets: Sequence[Target]) -> Iterator[Path]:
    """Compile what the folder lacks; returns the paths of all files."""
    for group in map(GROUPS.__getitem__, groups):
        path = bitcode_path(folder, group)
        bitcode = read_cached(path)
        if bitcode is None:
            bitcode = compile_group(group.name)
            keep(path, bitcode)
        yield path
        for target in targets_of(group, targets):
            path = object_path(folder, group, target)
            if read_cached(path) is None:
                keep(path, object_of_group(bitcode, target))
            yield path


def _target(text: str) -> Target:
    platform, _, processor = text.partition(":")
    return Target(PLATFORMS[platform], processor)


if __name__ == "__main__":
    _, given_folder, given_groups, *given_targets = sys.argv
    for file in compile_groups(Path(given_folder), given_groups.split(","), [*map(_target, given_targets)]):
        print(file.name, flush=True)  # noqa: T201  # to the process that waits
