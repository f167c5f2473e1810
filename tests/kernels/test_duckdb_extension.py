"""The DuckDB extension file describes itself, and loads only in the versions that it is made for."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from duckdb_shell import Shell

import sparseeinsum as se
from sparseeinsum.cli import main
from sparseeinsum.kernels.building import linking, processors
from sparseeinsum.kernels.platforms import this_platform
from sparseeinsum.kernels.symbols import EXPORTED_TO_DUCKDB


def test_functions_of_users_are_refused(shell: Shell) -> None:
    (message,) = shell.errors(["SELECT tensor_map('smooth(u)', [1.0])"])
    assert "unknown function" in message
    assert "only in the Python process that compiled them" in message


def test_the_footer_names_version_and_platform(shell: Shell) -> None:
    content = shell.extension.read_bytes()
    head, magic, signature = content[-534:-512], content[-512:-256], content[-256:]
    assert head == b"\x00\x93\x04\x10duckdb_signature\x80\x04"
    assert signature == bytes(256)
    fields = [magic[start : start + 32].rstrip(b"\0").decode() for start in range(0, 256, 32)]
    ((platform,),) = duckdb.execute("PRAGMA platform").fetchall()
    assert fields == ["", "", "", "C_STRUCT", se.__version__, "v1.5.6", platform, "4"]
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", shell.extension], capture_output=True, text=True, check=True
    )
    assert {line.split()[2] for line in symbols.stdout.splitlines()} == set(EXPORTED_TO_DUCKDB)


def test_another_version_of_duckdb_refuses_it(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / shell.extension.name
    content = shell.extension.read_bytes()
    file.write_bytes(content[:-512] + content[-512:].replace(b"v1.5.6\0\0", b"v1.999.0"))
    refused = Shell(file).run(script="SELECT 1;")
    assert "built for DuckDB C API version 'v1.999.0', but we can only load extensions built for" in refused.stderr


def test_a_shell_without_the_option_refuses_it(shell: Shell) -> None:
    command = [sys.executable, "-m", "duckdb_cli", "-c", f"LOAD '{shell.extension}'"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "duckdb -unsigned" in refused.stderr


def test_installed_in_a_folder(shell: Shell, tmp_path: Path) -> None:
    """INSTALL copies the file to where LOAD finds it by its name."""
    place = f"SET extension_directory = '{tmp_path}'"
    command = [sys.executable, "-m", "duckdb_cli", "-unsigned", "-csv", "-noheader"]
    for statements in (
        f"{place}; INSTALL '{shell.extension}'",
        f"{place}; LOAD sparseeinsum; SELECT tensor_norm([3, 4])",
    ):
        finished = subprocess.run([*command, "-c", statements], capture_output=True, text=True, timeout=300, check=True)
    assert finished.stdout == "5.0\n"


def test_loading_beside_the_package_changes_nothing(shell: Shell) -> None:
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{shell.extension}'")
        assert connection.execute("SELECT tensor_add([1], [2])").fetchall() == [([3],)]
        query = "SELECT install_mode FROM duckdb_extensions() WHERE extension_name = 'sparseeinsum'"
        assert connection.execute(query).fetchall() == [("STATICALLY_LINKED",)]


def test_loaded_twice_and_in_two_databases_of_one_process(shell: Shell) -> None:
    load, ask = f"LOAD '{shell.extension}'", "SELECT tensor_add([1], [2]) AS w"
    assert shell.rows([load, ask]) == [[{"w": [3]}]]
    program = (
        "import duckdb\nfor _ in 'ab':\n    c = duckdb.connect(config={'allow_unsigned_extensions': 'true'})\n"
        f'    c.execute("{load}"); print(c.execute("{ask}").fetchall())'
    )
    command = [sys.executable, "-c", program]
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=True, cwd=shell.extension.parent
    )
    assert finished.stdout == "[([3],)]\n" * 2


REGISTERS_TWICE = """
import duckdb, sparseeinsum
from sparseeinsum.kernels.duckdb.extension import _ENTRY_POINT
from sparseeinsum.kernels.duckdb.static_extension import register_static_extension

register_static_extension("another", "1", "v1.2.0", _ENTRY_POINT)
duckdb.connect()
"""


def test_a_function_that_exists_is_named() -> None:
    """If another extension has some functions, loading fails rather than mixing the two."""
    refused = subprocess.run(
        [sys.executable, "-c", REGISTERS_TWICE], capture_output=True, text=True, timeout=300, check=False
    )
    assert re.search("DuckDB refused the function tensor_[a-z]+; is there another of this name", refused.stderr)


SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
GetDatabase = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
GetApi = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


class Access(ctypes.Structure):
    """The interface that DuckDB passes to an extension's entry point."""

    _fields_ = (("set_error", SetError), ("get_database", GetDatabase), ("get_api", GetApi))


def test_missing_parts_of_duckdbs_interface_are_errors(shell: Shell) -> None:
    """No table of functions, which DuckDB reports itself; no database; or another DuckDB's table in the process."""
    enter = ctypes.CDLL(str(shell.extension)).sparseeinsum_init_c_api
    enter.restype = ctypes.c_bool
    versions: list[bytes] = []
    messages: list[bytes] = []

    def loads(table: ctypes.Array[ctypes.c_int64] | None) -> bool:
        def get_api(_: object, version: bytes) -> int | None:
            versions.append(version)
            return None if table is None else ctypes.addressof(table)

        set_error = SetError(lambda _, message: messages.append(message))
        access = Access(set_error, GetDatabase(lambda _: None), GetApi(get_api))
        return bool(enter(None, ctypes.byref(access)))

    one, another = ((ctypes.c_int64 * 1000)(number) for number in (1, 2))
    assert [loads(table) for table in (None, one, another, one)] == [False] * 4
    assert set(versions) == {b"v1.5.6"}
    assert [re.findall("no connection|another DuckDB", message.decode()) for message in messages] == [
        ["no connection"],
        ["another DuckDB"],
        ["no connection"],
    ]


@pytest.mark.skipif(not this_platform().is_x86, reason="this processor has no levels")
def test_a_file_for_another_processor_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading fails with an error, before an unknown instruction crashes the process."""
    monkeypatch.setitem(processors._BITS[(1, "ecx")], "reserved", 16)  # a bit that no processor sets
    monkeypatch.setattr(processors, "features", lambda target: frozenset(("sse3", "reserved")))
    assert main(["build", "duckdb", "--output", str(tmp_path)]) == 0
    refused = Shell(tmp_path / "sparseeinsum.duckdb_extension").run(script="SELECT 1;")
    assert "another processor" in refused.stderr


def test_what_cannot_be_built_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build = ["build", "duckdb", "--output", str(tmp_path)]

    def refused(*arguments: str, status: int = 1) -> str:
        assert main([*build, *arguments]) == status
        return capsys.readouterr().err

    assert "--version is for postgres" in refused("--version", "16", status=2)
    assert "the processor i386 is none of x86-64-v2" in refused("--processor", "i386")
    monkeypatch.setattr(linking, "_LINKERS_OF_LINUX", ("no-such-linker",))
    monkeypatch.setattr(linking, "_has_zig", lambda: False)
    assert "pip install ziglang" in refused()
    assert list(tmp_path.iterdir()) == []
