"""What the pages about extending the package add works as typed, in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparseeinsum.environment import assets

pytestmark = pytest.mark.engines("duckdb", reason="records are the same for every engine")

PAGES = assets.ROOT / "docs" / "extending"
# For the blocks of a page in order: the file, and the text before which they are inserted.
FUNCTION = ("sparseeinsum/operators/elementary.py", ")\n\nROUNDING = (")
AGGREGATE = ("sparseeinsum/operators/aggregates.py", ")\n\nAGGREGATES: dict")
SCAN = ("sparseeinsum/operators/scans.py", ")\n\nSCANS: dict")
PLACES = {"functions.md": [FUNCTION], "aggregates.md": [FUNCTION, AGGREGATE, SCAN]}

COMMON = """
import numpy as np
import sparseeinsum as se
from sparseeinsum.kernels.postgresql.portable.portable_script import portable_script
from sparseeinsum.semantics.dense import evaluate_program

X = np.array([[-8.0, 0.0, 1.0], [3.0, 4.0, 12.0]])

def computed(text):
    program = se.program(text)
    assert se.program(str(program)) == program
    return evaluate_program(program, {"X": X})["Y"]
"""
CHECKS = {
    "functions.md": """
from sparseeinsum.kernels.compiled.operator_codes import function_of, functions_by_code
from sparseeinsum.operators.functions import FUNCTIONS

np.testing.assert_allclose(computed("Y[i, j] = cbrt(X[i, j])"), np.cbrt(X))
assert str(np.cbrt(se.tensor("X")["i", "j"])) == "cbrt(X[i, j])"
assert "stack[a + i] := cbrt(stack[a + i])" in portable_script("0", "public")
operands, body = functions_by_code("real")[list(FUNCTIONS).index("cbrt")]
assert operands == 1 and abs(body(-8.0) + 2) < 1e-15
""",
    "aggregates.md": """
from sparseeinsum.kernels.compiled.arithmetic import arithmetic_of
from sparseeinsum.kernels.compiled.operator_codes import CODES
from sparseeinsum.kernels.array_functions import array_functions

np.testing.assert_allclose(computed("Y[i] = length(X[i, j])"), np.linalg.norm(X, axis=1))
assert "tensor_length" in {function.name for function in array_functions()}
folded = np.zeros(3)
for row in X:
    assert arithmetic_of("f64").fold(CODES["length"], folded, row) == 0
np.testing.assert_allclose(folded, np.linalg.norm(X, axis=0))
np.testing.assert_allclose(computed("Y[i, j] = cumlength[j](X[i, j])"), np.sqrt(np.cumsum(X * X, axis=1)))
""",
}
RUNS = {
    "functions.md": ("Y[i] = sum(cbrt(X[i, j]) * X[i, j])", "(np.cbrt(X) * X).sum(1)"),
    "aggregates.md": (
        "Y[i, j] = length(X[k, j]) * cumlength[j](2 * X[i, j])",
        "np.linalg.norm(X, axis=0) * 2 * np.sqrt(np.cumsum(X * X, axis=1))",
    ),
}

# Pages whose blocks name their file: new files, and changes of existing files.
CHANGES = ("engines.md", "layouts.md", "rewrites.md")


@pytest.fixture(params=PLACES)
def page(request: pytest.FixtureRequest) -> str:
    """The name of a page."""
    return str(request.param)


@pytest.fixture
def copy(page: str, tmp_path: Path) -> Path:
    """A copy of the project with the records of a page added."""
    copy_project(tmp_path)
    blocks = re.findall(r"```py\n(.*?)```", (PAGES / page).read_text(encoding="utf-8"), re.DOTALL)
    for block, (name, before) in zip(blocks, PLACES[page], strict=True):
        file = tmp_path / name
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1
        file.write_text(text.replace(before, f"{block.rstrip()},\n{before}"), encoding="utf-8")
    return tmp_path


def copy_project(folder: Path) -> None:
    for name in ("sparseeinsum", "udfs", "sql", "stats", "docs"):
        shutil.copytree(assets.ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


def run(copy: Path, program: str, timeout: float) -> None:
    """Run a Python program on the copy."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(copy)!r})\n{program}"]
    finished = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=timeout, check=False)
    assert finished.returncode == 0, finished.stderr[-3000:]


def test_records_as_typed(page: str, copy: Path) -> None:
    run(copy, COMMON + CHECKS[page], 300)
    table = (copy / "docs" / "language.md").read_text(encoding="utf-8")
    run(copy, "import runpy; runpy.run_path('docs/tables.py', run_name='__main__')", 60)
    assert len((copy / "docs" / "language.md").read_text(encoding="utf-8").splitlines()) > len(table.splitlines())


def test_records_in_a_database(page: str, copy: Path) -> None:
    """After kernels are compiled with the records."""
    text, expected = RUNS[page]
    program = f"""
db = se.connect()
db.tensor("X", X)
for optimizer in ("dp", "relational", "dense"):
    found = db.run({text!r}, optimizer=optimizer)["Y"].to_numpy()
    np.testing.assert_allclose(found, {expected})
"""
    run(copy, COMMON + program, 600)


def blocks_of(name: str) -> list[tuple[str, str, str]]:
    """The blocks of a page that name their file: py or diff, the path, and the text."""
    return re.findall(r'```(py|diff) title="(.*?)"\n(.*?)```', (PAGES / name).read_text(encoding="utf-8"), re.DOTALL)


def test_changes_fit_the_code() -> None:
    """What the pages show of existing files is there; `test_changes_as_typed`, which takes longer, runs the changes."""
    diffs = [(path, block) for name in CHANGES for language, path, block in blocks_of(name) if language == "diff"]
    assert len(diffs) > len(CHANGES)
    for path, block in diffs:
        assert changed((assets.ROOT / path).read_text(encoding="utf-8"), block)


@pytest.mark.parametrize("name", CHANGES)
def test_changes_as_typed(name: str, tmp_path: Path) -> None:
    """The tests of a page pass on a copy of the project with the files and changes of that page."""
    copy_project(tmp_path)
    blocks = blocks_of(name)
    for language, path, block in blocks:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            block if language == "py" else changed(file.read_text(encoding="utf-8"), block), encoding="utf-8"
        )
    tests = [path for _, path, _ in blocks if path.startswith("tests/")]
    assert tests
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    finished = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert finished.returncode == 0, finished.stdout[-3000:]


def changed(text: str, diff: str) -> str:
    """A text in which the lines of a diff without line numbers are changed."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if not line.startswith("+"))
    after = "".join(line[1:] for line in lines if not line.startswith("-"))
    assert text.count(before) == 1, before
    return text.replace(before, after)
