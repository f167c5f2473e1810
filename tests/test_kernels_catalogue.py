"""What several places must know alike: functions.toml, the sources of udfs/, the language; and the cache of kernels."""

import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import sparseeinsum as se
from sparseeinsum import assets
from sparseeinsum.assets import load_kernels
from sparseeinsum.kernels import descriptors, native
from sparseeinsum.kernels.catalogue import Kind, ValueType, functions
from sparseeinsum.kernels.compiled import measures
from sparseeinsum.kernels.compiled.arithmetic import numbers_of
from sparseeinsum.kernels.compiled.row_kernels import row_kernels
from sparseeinsum.language.dtypes import AGGREGATES
from sparseeinsum.language.scalar import FUNCTIONS, Call, Literal, Operand, evaluate, write
from sparseeinsum.render.values import MAX_LABELS_INSIDE
from sparseeinsum.settings import cache_folder

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL's kernels come of the same catalogue and cache")

KERNELS = ("aggregation", "complexes", "contraction", "elementwise", "expression", "integers", "layout", "tiles")
COMPUTE = "import sparseeinsum as se; print(se.connect().connection.execute('SELECT tensor_add([1], [2])').fetchall())"


def test_scalar_functions_of_language_and_kernels_agree() -> None:
    expression, evaluation = load_kernels("expression"), load_kernels("evaluation")
    assert tuple(FUNCTIONS) == expression.FUNCTIONS
    assert tuple(function.operands for function in FUNCTIONS.values()) == expression.OPERANDS
    operators = [function for function in FUNCTIONS.values() if function.symbol]
    assert tuple(function.symbol for function in operators) == expression.SYMBOLS
    assert tuple(function.precedence for function in operators) == expression.PRECEDENCES
    codes = {name: getattr(evaluation, name.upper()) for name in FUNCTIONS}
    assert codes == {name: code for code, name in enumerate(FUNCTIONS)}


@pytest.mark.parametrize("name", ["integers", "complexes"])
def test_codes_of_other_numbers_agree(name: str) -> None:
    """Each file of kernels stands alone, so that they repeat the codes of operations, functions and literals."""
    evaluation, expression = vars(load_kernels("evaluation")), vars(load_kernels("expression"))
    public = vars(load_kernels("aggregation")) | vars(load_kernels("elementwise"))
    own = {name: value for name, value in vars(load_kernels(name)).items() if name.isupper()}
    private = evaluation | {name: expression[name] for name in ("WHOLE", "IMAGINARY")}
    for constant, code in own.items():
        if constant.startswith("_") and constant[1:] in private:
            assert code == private[constant[1:]]
        elif constant in ("SUM", "PROD", "MAX", "MIN", "ANY", "ALL", "ADD", "SUBTRACT", "MULTIPLY"):
            assert code == public[constant]
    assert {"_ADD", "_WHERE", "ADD", "SUM", "ANY"} <= set(own)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_scalar_function_is_one_in_sql(shared_db: se.Database, name: str) -> None:
    operands = (Operand(0), Operand(1), Literal(0.5))[: FUNCTIONS[name].operands]
    call = write(Call(name, operands))
    query = "SELECT tensor_reduce('prod', $1, ',->', [2.5], [1.5], [])"
    ((found,),) = shared_db.connection.execute(query, [call]).fetchall()
    assert found == [pytest.approx(float(evaluate(Call(name, operands), (2.5, 1.5))))]


def test_messages_and_descriptions_list_every_scalar_function() -> None:
    expression = load_kernels("expression")
    names = expression.CALLABLE
    assert f"known: {' '.join(names)}; functions of users" in descriptors.MESSAGES_BY_CODE[expression.UNKNOWN_NAME]
    (described,) = {
        listed
        for function in functions()
        if function.name == "tensor_map"
        for listed in re.findall(r"Functions: (.*); operators: (.*)\.", function.description)
    }
    assert described == (", ".join(names), " ".join(dict.fromkeys(expression.SYMBOLS)))


def test_aggregates_agree() -> None:
    assert tuple(AGGREGATES) == load_kernels("aggregation").AGGREGATES
    assert {f"tensor_{aggregate}" for aggregate in AGGREGATES} <= {function.name for function in functions()}
    listed = descriptors.MESSAGES_BY_CODE[load_kernels("aggregation").UNKNOWN_AGGREGATE]
    assert listed.endswith(", ".join(AGGREGATES))


def test_limits_agree() -> None:
    labels = load_kernels("contraction").MAX_LABELS
    assert labels == MAX_LABELS_INSIDE == load_kernels("layout").MAX_AXES
    assert f"more than {labels} labels" in descriptors.MESSAGES_BY_CODE[load_kernels("contraction").TOO_MANY_LABELS]
    assert 1 + labels == descriptors.SHAPE_WORDS
    assert f"more than {labels}" in descriptors.MESSAGES_BY_CODE[descriptors.TOO_MANY_EXTENTS]
    assert max(len(function.arguments) for function in functions()) <= descriptors.MAX_ARGUMENTS
    expression = load_kernels("expression")
    table_entry = (expression.ENTRY_WORDS, expression.MAX_NAME)
    assert table_entry == (descriptors.USERS_FUNCTION_WORDS, descriptors.MAX_FUNCTION_NAME)


def test_every_error_code_has_a_message_of_its_own() -> None:
    codes = [
        value
        for module in (*map(load_kernels, KERNELS), descriptors)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int) and value < 0 and not name.startswith("_")
    ]
    assert sorted(codes) == sorted(descriptors.MESSAGES_BY_CODE)
    for message in descriptors.MESSAGES_BY_CODE.values():
        shown = re.findall(r"%lld|%\.\*s", message)  # a number, or a text, which takes its length and its address
        assert len(re.findall("%", message)) == len(shown)
        assert sum(1 if each == "%lld" else 2 for each in shown) <= descriptors.MESSAGE_WORDS


def test_every_function_has_kernels_and_no_kernel_is_idle() -> None:
    kernels = row_kernels(numbers_of("f32"))
    computing = [function for function in functions() if function.kind != Kind.VIEW]
    assert {function.kernel for function in computing} == set(kernels)
    for function in computing:
        assert hasattr(measures, f"measure_{function.measure}")
        kernel = kernels[function.kernel]
        returns_parts = function.returns in (ValueType.TENSORS, ValueType.COMPLEX_TENSORS)
        assert returns_parts == (kernel.part_size is not None)
        assert function.is_aggregate == (kernel.initialise is not None) == (kernel.combine is not None)
        assert function.is_aggregate or not function.has_background
        if function.kind == Kind.CHECK:
            assert function.returns == function.arguments[1].type
        assert set(function.dtypes) in ({"f64", "f32"}, {"f64", "f32", "i64"}, {"c128", "c64"})


def test_overloads_differ_in_their_arguments() -> None:
    signatures = [(function.name, *(argument.type for argument in function.arguments)) for function in functions()]
    assert len(set(signatures)) == len(signatures)
    kinds = {(function.name, function.is_aggregate) for function in functions()}
    assert len(kinds) == len({name for name, _ in kinds})


GROUPS = native.GROUPS_OF_HOSTS["duckdb"]


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file: when it was written, and what it holds."""
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in sorted(folder.iterdir())}


@pytest.fixture
def cache(shared_db: se.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own that holds the kernels of this version alone."""
    kept = cache_folder()
    folder = tmp_path / "sparseeinsum"
    folder.mkdir()
    for group, digest in native._fingerprints(GROUPS).items():
        shutil.copy2(kept / f"kernels-{digest}-{group}.o", folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return folder


def test_a_second_process_compiles_nothing(cache: Path) -> None:
    before = snapshot(cache)
    assert len(before) == len(GROUPS)
    process = subprocess.run([sys.executable, "-c", COMPUTE], capture_output=True, text=True, check=True)
    assert process.stdout == "[([3],)]\n"
    assert "compiling" not in process.stderr
    assert snapshot(cache) == before


def test_processes_of_one_cache_at_the_same_time(cache: Path) -> None:
    before = snapshot(cache)
    processes = [subprocess.Popen([sys.executable, "-c", COMPUTE], stdout=subprocess.PIPE, text=True) for _ in "ab"]
    assert [process.communicate()[0] for process in processes] == ["[([3],)]\n"] * 2
    assert snapshot(cache) == before


def test_what_another_process_compiles_is_waited_for(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {file: file.read_bytes() for file in cache.iterdir()}
    good = native.kernel_objects("duckdb")
    compilations = count_compilations(monkeypatch, good)
    found_nothing = threading.Event()

    @contextmanager
    def notice(processor: str) -> Iterator[None]:
        found_nothing.set()
        yield

    monkeypatch.setattr(native, "_notice", notice)
    with ThreadPoolExecutor() as pool, native._alone_in(cache):  # as the other one
        for file in whole:
            file.unlink()
        waiting = pool.submit(native.kernel_objects, "duckdb")
        assert found_nothing.wait(60)
        for file, content in whole.items():
            file.write_bytes(content)
    assert waiting.result() == good
    assert compilations == [0]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
    "one bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "longer": lambda content: content + b"\0",
    "no digest": lambda content: content[native._DIGEST_BYTES :],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_compiled_anew(cache: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    good = native.kernel_objects("duckdb")
    victim = sorted(cache.iterdir())[0]
    whole = {file: content for file, (_, content) in snapshot(cache).items()}
    victim.write_bytes(DAMAGES[damage](victim.read_bytes()))
    compilations = count_compilations(monkeypatch, good)
    assert native.kernel_objects("duckdb") == good
    assert native.kernel_objects("duckdb") == good
    assert compilations == [1]
    assert {file: content for file, (_, content) in snapshot(cache).items()} == whole


def test_a_missing_file_is_compiled_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = native.kernel_objects("duckdb")
    sorted(cache.iterdir())[1].unlink()
    compilations = count_compilations(monkeypatch, good)
    assert native.kernel_objects("duckdb") == good
    assert compilations == [1]
    assert len(list(cache.iterdir())) == len(GROUPS)


def test_a_cache_that_cannot_be_written_only_costs_time(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = native.kernel_objects("duckdb")
    occupied = cache.parent / "file"
    occupied.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(occupied))
    compilations = count_compilations(monkeypatch, good)
    assert native.kernel_objects("duckdb") == good
    assert compilations == [len(GROUPS)]


def count_compilations(monkeypatch: pytest.MonkeyPatch, objects: tuple[bytes, ...]) -> list[int]:
    """Let compiling give known objects at once; returns a list of how often that happened, kept up to date."""
    count = [0]

    def compile_groups(groups: list[str], folder: Path, processor: str) -> dict[str, bytes]:
        count[0] += len(groups)
        return {group: objects[GROUPS.index(group)] for group in groups}

    monkeypatch.setattr(native, "_compile_groups", compile_groups)
    return count


@pytest.mark.parametrize("changed", ["layout.py", "functions.toml"])
def test_changed_sources_are_compiled_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: str) -> None:
    before = native._fingerprints(GROUPS)
    shutil.copytree(assets.path("udfs"), tmp_path / "udfs")
    monkeypatch.setattr(assets, "ROOT", tmp_path)
    assert native._fingerprints(GROUPS) == before
    with (tmp_path / "udfs" / changed).open("a") as file:
        file.write("# changed\n")
    after = native._fingerprints(GROUPS)
    assert all(after[group] != before[group] for group in GROUPS)


def test_a_failure_to_compile_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"compiling the kernels failed: (.|\n)*unknown"):
        native._compile_groups(["unknown"], tmp_path)
    assert not list(tmp_path.iterdir())
