"""Attack an engine with random programs and broken calls, for as long as asked: `make fuzz MINUTES=60`.

Nothing is the same twice: the seed is printed, and `--seed` repeats it. Attacks run in processes of their own, so that
one which ends a process is told, too. Every run begins with the failures of the past, in corpus.txt.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from fuzzing.targets import Target, target_of

ATTACKS = {"programs": 6.0, "calls": 3.0, "names": 2.0, "kills": 4.0, "edits": 6.0}  # seconds of each attack in turn
CORPUS = Path(__file__).with_name("corpus.txt")  # each line has an attack, an engine and a number
_LONGEST_SECONDS = 180  # per process


def main() -> int:
    """Attack; return the number of failures, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--engine", choices=("duckdb", "postgresql"), default="duckdb")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--attack", choices=ATTACKS, action="append", help="only this one (default: all in turn)")
    parser.add_argument("--process", nargs=4, metavar=("ATTACK", "NUMBER", "SECONDS", "PLACE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        name, number, seconds, place = arguments.process
        return _attack(name, int(number), float(seconds), Target(arguments.engine, place))
    print(f"seed {arguments.seed} on {arguments.engine}", flush=True)
    with tempfile.TemporaryDirectory() as folder, target_of(arguments.engine, Path(folder)) as target:
        failed = _run(target, arguments.seed, arguments.attack or list(ATTACKS), 60 * arguments.minutes)
    return int(failed > 0)


def _run(target: Target, seed: int, attacks: list[str], seconds: float) -> int:
    end, failed, counts = time.monotonic() + seconds, 0, Counter[str]()
    for name, number, length in _numbers(target, seed, attacks):
        finished = _process(target, name, number, min(length, max(end - time.monotonic(), 0)))
        counts[name] += finished.stdout.count("\n")
        if finished.returncode != 0:
            failed += 1
            print(
                f"{name} failed with {finished.returncode}\n{finished.stdout[-300:]}\n{finished.stderr[-4000:]}",
                flush=True,
            )
        if time.monotonic() > end:
            break
    print(", ".join(f"{count} numbers of {name}" for name, count in counts.items()), f"- {failed} failed")
    return failed


def _numbers(target: Target, seed: int, attacks: list[str]) -> Iterator[tuple[str, int, float]]:
    """Attacks to run: name, first number and seconds; for the corpus, single numbers."""
    for line in CORPUS.read_text().splitlines():
        name, engine, past = line.split()
        if engine == target.engine and name in attacks:
            yield name, int(past), 0.0
    number = seed
    while True:
        for name in attacks:
            yield name, number, ATTACKS[name]
        number += 1_000_003


def _process(target: Target, name: str, number: int, seconds: float) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fuzzing", "--engine", target.engine]
    command += ["--process", name, str(number), str(seconds), target.place]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        printed = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        return subprocess.CompletedProcess(command, 1, printed, f"took more than {_LONGEST_SECONDS} s")


def _attack(name: str, number: int, seconds: float, target: Target) -> int:
    """Try numbers until the time is over, one at least; each is printed before."""
    attack = import_module(f"fuzzing.{name}").attack
    end = time.monotonic() + seconds
    while True:
        print(name, target.engine, number, flush=True)
        attack(number, target)
        number += 1
        if time.monotonic() >= end:
            return 0


if __name__ == "__main__":
    sys.exit(main())
