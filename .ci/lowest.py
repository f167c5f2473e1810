"""Prints the lowest versions that pyproject.toml allows, of dependencies and of some extras, as constraints."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
requirements = list(project["dependencies"])
for extra in sys.argv[1:]:
    requirements += project["optional-dependencies"][extra]
for requirement in requirements:
    if bound := re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement):
        print(f"{bound[1]}=={bound[2]}")  # noqa: T201
