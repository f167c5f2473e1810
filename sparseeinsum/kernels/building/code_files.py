"""Kernels: names the files of compiled code; a name contains a digest of the sources and the compiler."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from sparseeinsum.kernels.building.source_digests import digest_of_bitcode, digest_of_object
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.groups import CompilationGroup


def bitcode_path(folder: Path, group: CompilationGroup) -> Path:
    """Return the path of a group's bitcode, which is for any processor."""
    return folder / f"bitcode-{group.name}-{digest_of_bitcode(group.name)}.bc"


def object_path(folder: Path, group: CompilationGroup, target: Target) -> Path:
    """Return the path of a group's machine code for a target."""
    name = str(target).replace(":", "-")
    return folder / f"object-{group.name}-{name}-{digest_of_object(group.name, target)}.o"


def targets_of(group: CompilationGroup, targets: Sequence[Target]) -> Collection[Target]:
    """Return the targets that a group is compiled for, for a library that supports `targets`."""
    if not group.is_for_all_processors:
        return targets
    return dict.fromkeys(Target(target.platform) for target in targets)


def files_of(group: CompilationGroup, targets: Sequence[Target], folder: Path) -> Iterator[Path]:
    """Yield the paths of all files of a group."""
    yield bitcode_path(folder, group)
    yield from (object_path(folder, group, target) for target in targets_of(group, targets))
