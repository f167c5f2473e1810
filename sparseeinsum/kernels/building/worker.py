"""Kernels: compiles a group in a process of its own, so that the compiler's memory is freed at the end.

`python -m sparseeinsum.kernels.building.worker FOLDER GROUP TARGET...` writes the files that the folder lacks, and
prints the name of every file once it exists.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparseeinsum.kernels.building.cache import read_cached, write_cached
from sparseeinsum.kernels.building.code_files import bitcode_path, object_path, targets_of
from sparseeinsum.kernels.building.code_generation import object_of_group
from sparseeinsum.kernels.building.frontend import compile_group
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.groups import GROUPS, CompilationGroup
from sparseeinsum.kernels.platforms import PLATFORMS


def compile_files(folder: Path, group: CompilationGroup, targets: Sequence[Target]) -> Iterator[Path]:
    """Compile the files of a group that `folder` lacks for `targets`; yields the path of every file once it exists."""
    path = bitcode_path(folder, group)
    bitcode = read_cached(path)
    if bitcode is None:
        bitcode = compile_group(group.name)
        write_cached(path, bitcode)
    yield path
    for target in targets_of(group, targets):
        path = object_path(folder, group, target)
        if read_cached(path) is None:
            write_cached(path, object_of_group(bitcode, target))
        yield path


def _target(text: str) -> Target:
    platform, _, processor = text.partition(":")
    return Target(PLATFORMS[platform], processor)


if __name__ == "__main__":
    _, folder_argument, group_argument, *target_arguments = sys.argv
    for file in compile_files(Path(folder_argument), GROUPS[group_argument], [*map(_target, target_arguments)]):
        print(file.name, flush=True)  # noqa: T201  # the parent process reads it
