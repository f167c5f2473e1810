"""Kernels: the texts of an extension for PostgreSQL in; its control file and scripts in a folder out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels.whole_files import write_whole


@dataclass(frozen=True, slots=True)
class ExtensionTexts:
    """What PostgreSQL reads of an extension.

    Attributes:
        name: Of the extension.
        version: Of the extension.
        control: Its control file.
        install: The script of `CREATE EXTENSION`.
        update: The script of `ALTER EXTENSION ... UPDATE`, the same from whichever version before.
    """

    name: str
    version: str
    control: str
    install: str
    update: str

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write control file and scripts, of which one leads here from each version whose script is there."""
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
    """The texts of an extension, of all versions, in a folder."""
    return [*sorted(folder.glob(f"{extension}--*.sql")), *folder.glob(f"{extension}.control")]


def _versions_in(folder: Path, extension: str) -> list[str]:
    """Versions of an extension of which a script is in a folder."""
    names = (
        file.name.removeprefix(f"{extension}--").removesuffix(".sql") for file in folder.glob(f"{extension}--*.sql")
    )
    return sorted(name for name in names if "--" not in name)


@contextmanager
def refused_with(advice: str) -> Iterator[None]:
    """What the operating system refuses becomes an ExtensionError, which names the file and gives advice."""
    try:
        yield
    except OSError as error:
        raise ExtensionError(f"{error.filename}: {error.strerror}; {advice}") from error
