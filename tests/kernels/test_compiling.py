"""The cache compiles only code that is missing or damaged."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparseeinsum.environment import assets
from sparseeinsum.environment.settings import cache_folder
from sparseeinsum.kernels.building import source_digests
from sparseeinsum.kernels.building.code_files import files_of
from sparseeinsum.kernels.building.make import cache_library
from sparseeinsum.kernels.building.processors import best_level
from sparseeinsum.kernels.building.source_digests import digest_of_bitcode
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.groups import GROUPS, HOSTS
from sparseeinsum.kernels.platforms import this_platform

HERE = Target(this_platform(), best_level(this_platform()))
ADD = "import sparseeinsum as se; print(se.connect().connection.execute('SELECT tensor_add([1], [2])').fetchall())"
SUM = "[([3],)]\n"

# The compiler copies existing files from a folder and reports them.
COPYING = """
import shutil, sys
from sparseeinsum.kernels.building import compiling

def copy(group, targets, folder, finish):
    for path in compiling.files_of(compiling.GROUPS[group], targets, folder):
        if compiling.read_cached(path) is None:
            shutil.copy2(f"{cache}/{{path.name}}", path)
            sys.stderr.write(f"compiled {{path.name}}\\n")
        finish(path.name)

compiling._run_worker = copy
"""


def run(program: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a program in a process of its own, with the tests' cache."""
    whole = COPYING.format(cache=cache_folder()) + program
    command = [sys.executable, "-c", whole]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=300)


def compiled_in(process: "subprocess.CompletedProcess[str]") -> list[str]:
    assert process.stdout == SUM, process.stderr
    return [line.removeprefix("compiled ") for line in process.stderr.splitlines() if line.startswith("compiled ")]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A new cache with kernels for this machine only."""
    library = cache_library(HERE.processor)
    folder = tmp_path / "sparseeinsum"
    folder.mkdir()
    paths = [path for group in GROUPS.values() for path in files_of(group, [HERE], cache_folder())]
    for path in (library, library.with_suffix(".sha256"), *(path for path in paths if "postgresql" not in path.name)):
        shutil.copy2(path, folder)
    return folder


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time of change and content of every file, except for the lock's."""
    files = sorted(file for file in folder.iterdir() if file.name != "lock")
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


def test_a_second_process_compiles_nothing(cache: Path) -> None:
    before = snapshot(cache)
    process = run(ADD, XDG_CACHE_HOME=str(cache.parent))
    assert compiled_in(process) == []
    assert process.stderr == ""
    assert snapshot(cache) == before


@pytest.mark.parametrize("lost", ["object-f64-*", "bitcode-duckdb-*", "*.sha256", "*"])
def test_what_is_lost_is_compiled_by_one_of_two_processes(cache: Path, lost: str) -> None:
    """The other process waits."""
    before = {name: content for name, (_, content) in snapshot(cache).items()}
    victims = [file.name for file in cache.glob(lost)]
    for name in victims:
        (cache / name).unlink()
    for library in cache.glob("duckdb-*.duckdb_extension"):
        library.unlink()
    program = COPYING.format(cache=cache_folder()) + ADD
    command, environment = [sys.executable, "-c", program], os.environ | {"XDG_CACHE_HOME": str(cache.parent)}
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate() for process in processes]
    assert [output for output, _ in outputs] == [SUM] * 2, outputs
    compiled = [
        line.split()[1] for _, errors in outputs for line in errors.splitlines() if line.startswith("compiled ")
    ]
    assert sorted(compiled) == sorted(name for name in victims if name.startswith(("object-", "bitcode-")))
    assert {name: content for name, (_, content) in snapshot(cache).items()} == before


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
    "one bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "longer": lambda content: content + b"\0",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_compiled_again(cache: Path, damage: str) -> None:
    before = {name: content for name, (_, content) in snapshot(cache).items()}
    victims = [*cache.glob("object-measures-*"), *cache.glob("bitcode-c64-*")]
    for file in (*victims, *cache.glob("duckdb-*.duckdb_extension")):
        file.write_bytes(DAMAGES[damage](file.read_bytes()))
    process = run(ADD, XDG_CACHE_HOME=str(cache.parent))
    assert sorted(compiled_in(process)) == sorted(file.name for file in victims)
    assert {name: content for name, (_, content) in snapshot(cache).items()} == before


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    cache_library(HERE.processor)
    occupied = tmp_path / "file"
    occupied.touch()
    assert len(compiled_in(run(ADD, XDG_CACHE_HOME=str(occupied)))) == 2 * (len(GROUPS) - 1)
    assert list(tmp_path.iterdir()) == [occupied]


def test_a_disk_that_is_full_only_costs_time(tmp_path: Path) -> None:
    cache_library(HERE.processor)
    full = "from sparseeinsum.kernels.building import make; make._ROOM_BYTES = 1 << 60\n"
    assert len(compiled_in(run(full + ADD, XDG_CACHE_HOME=str(tmp_path)))) == 2 * (len(GROUPS) - 1)
    assert [file.name for file in (tmp_path / "sparseeinsum").iterdir()] == []


def test_a_user_without_a_home(tmp_path: Path) -> None:
    nobody = "import pathlib, os\ndef home():\n    raise RuntimeError('none')\npathlib.Path.home = home\n"
    cache_library(HERE.processor)
    assert len(compiled_in(run(nobody + ADD, XDG_CACHE_HOME="", HOME=""))) == 2 * (len(GROUPS) - 1)


def test_older_files_are_removed(cache: Path) -> None:
    """The newest few stay, as another checkout of this user may need them."""
    (newest,) = cache.glob("object-f64-*")
    olds = [cache / f"object-f64-{HERE.platform.name}-{HERE.processor}-{number:024}.o" for number in range(9)]
    for number, old in enumerate(olds):
        old.touch()
        os.utime(old, (number, number))
    (damaged,) = cache.glob("bitcode-f64-*")
    damaged.unlink()
    for library in cache.glob("duckdb-*.duckdb_extension"):
        library.unlink()
    compiled_in(run(ADD, XDG_CACHE_HOME=str(cache.parent)))
    assert sorted(cache.glob("object-f64-*")) == sorted([newest, *olds[-3:]])


@pytest.fixture
def own_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Copies of udfs/ and of this package's kernels, from which digests are computed."""
    shutil.copytree(assets.path("udfs"), tmp_path / "udfs")
    shutil.copytree(assets.PACKAGE / "kernels", tmp_path / "sparseeinsum" / "kernels")
    monkeypatch.setattr(assets, "ROOT", tmp_path)
    monkeypatch.setattr(assets, "PACKAGE", tmp_path / "sparseeinsum")
    yield tmp_path
    for cached in (source_digests._sources_of, source_digests._imported):
        cached.cache_clear()


EDITS = {
    "udfs/layout.py": {"f64", "f32", "i64", "c128", "c64", "measures"},
    "udfs/matrix_product.py": {"matrix_products"},
    "sparseeinsum/kernels/compiled/duckdb/hint.py": {"duckdb"},
    "sparseeinsum/kernels/compiled/processor_choice.py": {"processor_choice"},
    "sparseeinsum/kernels/compiled/raw_memory.py": set(GROUPS),
    "sparseeinsum/kernels/messages.py": set(),
    "sparseeinsum/kernels/blas.py": set(),
    "sparseeinsum/kernels/duckdb/registry.py": set(),
    "udfs/functions.toml": set(),
}


@pytest.mark.parametrize("edited", EDITS)
def test_an_edit_compiles_dependent_kernels(own_sources: Path, edited: str) -> None:
    def digests() -> dict[str, str]:
        for cached in (source_digests._sources_of, source_digests._imported):
            cached.cache_clear()
        return {group: digest_of_bitcode(group) for group in GROUPS}

    before = digests()
    with (own_sources / edited).open("a") as file:
        file.write("# changed\n")
    after = digests()
    assert {group for group in GROUPS if before[group] != after[group]} == EDITS[edited]


@pytest.mark.parametrize("host", HOSTS)
def test_every_module_of_a_host_is_among_its_sources(host: str) -> None:
    """A change of a module that is not would be compiled only if another one changes, too."""
    modules = (assets.PACKAGE / "kernels" / "compiled" / host).glob("*.py")
    assert {module for module in modules if module.stem != "__init__"} <= set(source_digests._sources_of(host))


WRITE_TOO_MUCH = """
import pathlib, resource, signal
from sparseeinsum.kernels.whole_files import write_whole

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_whole(pathlib.Path("library.so"), bytes(100_000))
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no limits of files")
def test_a_full_disk_leaves_no_partial_file(tmp_path: Path) -> None:
    """A limit on the file size makes the disk seem full to a process."""
    (tmp_path / "library.so").write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", WRITE_TOO_MUCH], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "File too large\n"
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("library.so", b"old")]
