"""Kernels: writes the control file and scripts of an extension for PostgreSQL into a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels.whole_files import write_whole


@dataclass(frozen=True, slots=True)
class ExtensionTexts:
    """The texts that PostgreSQL reads of an extension.

    Attributes:
        name: The name of the extension.
        version: The version of the extension.
        control: The control file.
        install: The script of `CREATE EXTENSION`.
        update: The script of `ALTER EXTENSION ... UPDATE`, the same for every earlier version.
    """

    name: str
    version: str
    control: str
    install: str
    update: str

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write the control file and scripts, also one that updates from each version whose script is in the folder."""
        scripts = {f"{self.name}--{self.version}.sql": self.install} | {
            f"{self.name}--{earlier}--{self.version}.sql": self.update
            for earlier in _versions_in(folder, self.name)
            if earlier != self.version
        }
        texts = scripts | {f"{self.name}.control": self.control}
        for name, text in texts.items():
            write_whole(folder / name, text.encode(), 0o644)
        return tuple(folder / name for name in texts)


def extension_files(folder: Path, extension: str) -> list[Path]:
    """List the control file and scripts of all versions of an extension in a folder."""
    return [*sorted(folder.glob(f"{extension}--*.sql")), *folder.glob(f"{extension}.control")]


def _versions_in(folder: Path, extension: str) -> list[str]:
    """List the versions of an extension whose install scripts are in a folder."""
    names = (
        file.name.removeprefix(f"{extension}--").removesuffix(".sql") for file in folder.glob(f"{extension}--*.sql")
    )
    return sorted(name for name in names if "--" not in name)


@contextmanager
def reporting_with(advice: str) -> Iterator[None]:
    """Turn an OSError into an ExtensionError that names the file and ends with `advice`."""
    try:
        yield
    except OSError as error:
        raise ExtensionError(f"{error.filename}: {error.strerror}; {advice}") from error
