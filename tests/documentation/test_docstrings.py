"""The examples in docstrings of the package show what Python shows."""

import doctest
import importlib

from test_rooms import MODULES


def test_examples() -> None:
    modules = [name for name, path in MODULES.items() if ">>> " in path.read_text(encoding="utf-8")]
    results = [doctest.testmod(importlib.import_module(name)) for name in modules]
    assert sum(result.attempted for result in results) > 50
    assert [name for name, result in zip(modules, results, strict=True) if result.failed] == []
