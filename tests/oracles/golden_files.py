"""Golden files: texts that a person has reviewed, which UPDATE_GOLDEN=1 writes again."""

import os
from pathlib import Path


def check_golden_file(path: Path, text: str) -> None:
    """Compare a text with a golden file, or write it."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
