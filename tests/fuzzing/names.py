"""Random names and natural keys: what they name is found again, or they are refused."""

import random

import numpy as np
import pandas as pd
from reading import rows_of

import sparseeinsum as se
from fuzzing.targets import Target

NAMES = 6  # per number
_LONGEST_COLUMN = 63  # PostgreSQL's limit; a longer name is shortened and ends in its hash
PIECES = (
    *(
        "a",
        "B",
        "é",
        "ß",
        "İ",
        "漢",
        "🙂",
        " ",
        "\t",
        "\n",
        ".",
        '"',
        "'",
        "''",
        '""',
        ";",
        "--",
        "/*",
        "$",
        "%",
        "\\",
        ":",
    ),
    *("select", "VALUES", "public.", "sparseeinsum_", "pg_temp", "\x00", "\ud800", "\u202e", "_" * 30, "x" * 70, "0"),
)


def attack(number: int, target: Target) -> int:
    """Load and read tensors of some names, the same for the same number; returns how many.

    Raises:
        AssertionError: A tensor is not found again, or has other keys.
    """
    chance = random.Random(number)
    with target.database() as db:
        for turn in range(NAMES):
            name = chance.choice((_name(chance), f"T{turn}"))  # programs, and thus tensors, lack most random names
            axis = _name(chance)
            array = np.arange(1.0, 4.0) + turn
            try:
                stored = db.tensor(name, array, axes=[axis], promoted=[axis])
            except se.SparseEinsumError:
                continue
            assert db.tensors()[name] == stored, (name, axis)
            assert db.statistics(name).entries == len(array), (name, axis)
            if len(axis.encode()) < _LONGEST_COLUMN:
                db.tensor_from_table("again", stored.relation, stored.keys, stored.value)
                db.drop_tensor("again")
            db.drop_tensor(name)
            assert name not in db.tensors(), (name, axis)
        _keys(chance, db)
    return NAMES


def _keys(chance: random.Random, db: se.Database) -> None:
    drawn = dict.fromkeys(_name(chance) for _ in range(8))
    keys = [key for key in drawn if "\ud800" not in key]  # pandas makes no column of such keys
    frame = pd.DataFrame({"k": keys, "v": np.arange(1.0, len(keys) + 1)})
    try:
        db.tensor("K", frame, keys={"k": "names"})
    except se.SparseEinsumError:
        return
    values = dict(rows_of(db.run("Y[k] = 2 * K[k]")["Y"]))
    assert values == {key: 2.0 * place for place, key in enumerate(keys, 1)}, keys


def _name(chance: random.Random) -> str:
    return "".join(chance.choice(PIECES) for _ in range(chance.choice((0, 1, 1, 2, 3, 5))))
