"""Natural keys beside indices: loading them, and computing with a table that is read in place or was copied.

    python -m bench.natural_keys --entries 10_000_000 --keys 100_000
    python -m bench.natural_keys --url postgresql://user@host/database

`indices` loads the same entries without keys. A plan on a copy, which has indices, is compared with a plan that looks
up the keys of both columns in every row.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa

import sparseeinsum as se
from bench.timing import Figure, race, report

BASE = "indices"
_SAME = {"src": "person", "dst": "person"}


def random_frames(entries: int, keys: int, seed: int = 0) -> dict[str, pa.Table]:
    """The same entries of a square matrix by indices, by names, and by numbers with gaps."""
    rng = np.random.default_rng(seed)
    places = np.unique(rng.integers(0, keys * keys, entries))
    rng.shuffle(places)
    source, target, weight = places // keys, places % keys, rng.random(len(places))
    names = pa.array([f"person-{number:08d}" for number in range(keys)])

    def frame(first: object, second: object) -> pa.Table:
        return pa.table([first, second, weight], names=["src", "dst", "w"])

    return {
        BASE: frame(source, target),
        "texts": frame(names.take(pa.array(source)), names.take(pa.array(target))),
        "gapped numbers": frame(source * 17 + 5, target * 17 + 5),
    }


def loading(db: se.Database, frames: dict[str, pa.Table], repeat: int) -> list[Figure]:
    """Load each of the frames, into dictionaries that have the keys by then."""
    keys = {"texts": _SAME, "gapped numbers": dict.fromkeys(_SAME, "number")}

    def load(name: str) -> None:
        db.tensor(name.replace(" ", "_"), frames[name], keys=keys.get(name))

    contenders = {name: lambda name=name: load(name) for name in frames}
    return race(f"{frames[BASE].num_rows:,} entries", contenders, dict.fromkeys(frames, repeat), BASE)


def computing(db: se.Database, rows: int, repeat: int) -> list[Figure]:
    """Row sums of a table that holds keys, and of a copy of it with indices: plans that are made, and planning, too."""
    db.run("Y[i, j] = texts[i, j]", into={"Y": "named"})
    db.tensor_from_table("there", "named", ["i", "j"], "val", keys={"i": "person", "j": "person"})
    programs = {"copy": "Y[i] = sum(texts[i, j])", "where it is": "Y[i] = sum(there[i, j])"}
    plans = {name: db.plan(program) for name, program in programs.items()}
    contenders = {f"plan, {name}": lambda plan=plan: db.run(plan) for name, plan in plans.items()}
    contenders |= {f"program, {name}": lambda program=program: db.run(program) for name, program in programs.items()}
    return race(f"{rows:,} rows", contenders, dict.fromkeys(contenders, repeat), "plan, copy")


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--url", help="of PostgreSQL; a DuckDB in memory by default")
    parser.add_argument("--output", type=Path, default=Path("bench/results/natural_keys.json"))
    asked = parser.parse_args()
    frames = random_frames(asked.entries, asked.keys)
    with se.connect(asked.url) as db:
        report("Loading", loading(db, frames, asked.repeat), BASE, asked.output)
        figures = computing(db, frames[BASE].num_rows, asked.repeat)
    report("Row sums", figures, "plan, copy", asked.output.with_stem(f"{asked.output.stem}_read"))


if __name__ == "__main__":
    main()
