"""The command line: scripts that complete commands, options, choices and files in a shell, without starting Python."""

import argparse
from collections.abc import Iterator

import shtab

from sparseeinsum.environment.settings import completion_file
from sparseeinsum.kernels.whole_files import write_whole
from sparseeinsum.render.plain_sql.engines import OTHER_DIALECTS

_FILES = {"data", "database", "files", "html", "output", "pg_config", "plan", "program", "save", "source"}
_NEXT_STEPS = {
    "bash": "start a new bash; it needs the package bash-completion",
    "fish": "start a new fish",
    "zsh": "add this to ~/.zshrc before compinit, and start a new zsh: fpath+=({})",
}


def write_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for bash, zsh or fish."""
    for action in _actions(parser):
        if action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.dest in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest == "dialect":
            action.choices = tuple(OTHER_DIALECTS)
    return str(shtab.complete(parser, shell))


def install_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Save the script where the shell looks for it; returns what the user must do next.

    Raises:
        OSError: The folder cannot be written.
    """
    path = completion_file(shell)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, write_script(parser, shell).encode())
    return f"{path}: {_NEXT_STEPS[shell].format(path.parent)}"


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
