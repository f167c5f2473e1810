"""Commands of dbt and others in one process: dbt takes long to import, and has warnings of its own.

No module of the tests may have a name that begins with dbt_: dbt imports those, and takes them for plugins.

Run as a program: each argument is a JSON list of words, `dbt` or `sparseeinsum` and what follows; every command
prints a line of JSON, of whether it succeeded and what was said of each node.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command: whether it succeeded, and the messages of nodes, or the error."""

    success: bool
    messages: dict[str, str]


def run_commands(folder: Path, *commands: list[str], **environment: str) -> list[Outcome]:
    """Run commands in a folder, one after the other."""
    quiet = {"DO_NOT_TRACK": "1", "DBT_PROFILES_DIR": str(folder), "DBT_LOG_LEVEL": "none"}
    finished = subprocess.run(
        [sys.executable, __file__, *map(json.dumps, commands)],
        cwd=folder,
        env={**os.environ, **quiet, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr + finished.stdout
    marked = [line.removeprefix(_MARK) for line in finished.stdout.splitlines() if line.startswith(_MARK)]
    return [Outcome(*json.loads(line)) for line in marked]


_MARK = "outcome: "


def _dbt(words: list[str]) -> tuple[bool, dict[str, str]]:
    from dbt.cli.main import dbtRunner  # noqa: PLC0415  # of this program alone

    done = dbtRunner().invoke(words)
    messages = {result.node.name: str(result.message) for result in getattr(done.result, "results", None) or []}
    return done.success, messages | ({} if done.exception is None else {"": str(done.exception)})


def _sparseeinsum(words: list[str]) -> tuple[bool, dict[str, str]]:
    from sparseeinsum.cli import main  # noqa: PLC0415

    return main(words) == 0, {}


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        kind, *rest = json.loads(argument)
        outcome = {"dbt": _dbt, "sparseeinsum": _sparseeinsum}[kind](rest)
        sys.stdout.write(f"\n{_MARK}{json.dumps(outcome)}\n")
