"""Building a wheel: one for a platform brings the libraries that `make wheel` put into build/libraries before."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "SPARSEEINSUM_WHEEL"  # of the environment: DuckDB's name of the platform; without it, no library is brought
TAGS = {
    "linux_amd64": "manylinux_2_26_x86_64",
    "linux_arm64": "manylinux_2_26_aarch64",
    "osx_arm64": "macosx_11_0_arm64",
    "osx_amd64": "macosx_11_0_x86_64",
    "windows_amd64": "win_amd64",
}


class LibrariesHook(BuildHookInterface):
    """Puts libraries into a wheel, and says which platform it is for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        platform = os.environ.get(VARIABLE)
        if not platform:
            return
        libraries = Path(self.root) / "build" / "libraries" / platform
        if not libraries.is_dir():
            raise FileNotFoundError(f"{libraries} is not there; make wheel makes it")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[platform]}"
        build_data["force_include"][str(libraries)] = "sparseeinsum/_assets/libraries"
