"""The command line: the options that print or install a script for completion."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from sparseeinsum.environment.extras import imported

SHELLS = ("bash", "zsh", "fish")
_COMPLETION = "sparseeinsum.cli.completion"


class CompletionAction(argparse.Action):
    """Calls a function of the module for completion, prints what it returns, and ends; `function` is its name."""

    def __init__(self, option_strings: Sequence[str], dest: str, function: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs="?", choices=SHELLS, help=help)
        self._function = function

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        """Complete in the shell that `values` names; by default in that of the user."""
        shell = Path(os.environ.get("SHELL", "")).name if values is None else values
        if shell not in SHELLS:
            parser.error(f"{option_string} needs the name of your shell: {', '.join(SHELLS)}")
        completion = imported(_COMPLETION, "shell", "completion")
        print(getattr(completion, self._function)(parser, shell))
        parser.exit()
