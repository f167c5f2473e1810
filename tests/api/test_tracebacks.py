"""The traceback of a user's mistake shows the user's line and one frame of this package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparseeinsum.presentation.tracebacks import VARIABLE

ROOT = Path(__file__).parents[2] / "sparseeinsum"
CALLS = {
    "ParseError": "se.program('Y[i] = ')",
    "ShapeError": "db.run('Y[i] = sum(A[i, j, k])')",
    "CatalogueError": "db.plan('Y[i] = Missing[i]')",
    "DataError": "db.tensor('N', [None, 1.0])",
    "EngineError": "se.connect('mysql://nowhere')",
    "EngineError of a statement": "db.run('Y[i] = sum(A[i, j])', into={'Y': 'nowhere.c'})",
}


@pytest.mark.parametrize("kind", CALLS)
def test_one_frame_is_shown(kind: str) -> None:
    call = CALLS[kind]
    code = f"import sparseeinsum as se\ndb = se.connect()\ndb.tensor('A', [[1.0, 2.0]])\n{call}\n"
    without = {name: value for name, value in os.environ.items() if name != VARIABLE}
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=without)
    assert f"sparseeinsum.errors.{kind.split()[0]}: " in finished.stderr, finished.stderr
    own_lines = [line for line in finished.stderr.splitlines() if str(ROOT) in line]
    assert len(own_lines) == 1, finished.stderr
    assert 'File "<string>", line 4' in finished.stderr
