"""What one role wrote never runs with another role's rights, on any node of a Citus cluster."""

from collections.abc import Iterator

import numpy as np
import psycopg
import pytest

import sparseeinsum as se

LEFT = np.arange(12.0).reshape(4, 3)
PROGRAM = "Y[i] = sum(EV[i, j])"


@pytest.fixture
def low(citus: se.Database, citus_url: str) -> Iterator[psycopg.Connection]:
    """A session of a role that may use the catalogue and owns a schema."""
    boss = citus.connection
    boss.execute("CREATE ROLE low LOGIN; CREATE SCHEMA lows AUTHORIZATION low")
    citus.grant("low")
    boss.execute("GRANT USAGE ON SCHEMA lows TO PUBLIC")
    with psycopg.connect(citus_url.replace("postgres@", "low@"), autocommit=True) as connection:
        connection.execute("SET search_path = lows, public")
        yield connection
    boss.execute("RESET ROLE; DROP OWNED BY low CASCADE; DROP SCHEMA IF EXISTS lows CASCADE; DROP ROLE low")
    boss.execute("DELETE FROM sparseeinsum.tensors WHERE owner = 'low'")


def test_tables_of_others_are_read(citus: se.Database, low: psycopg.Connection) -> None:
    for distribute in ("dim_0", "replicated"):
        se.connect(low).tensor("EV", LEFT, promoted=["dim_0", "dim_1"], distribute=distribute)
        np.testing.assert_array_equal(citus.run(PROGRAM)["Y"].to_numpy(), LEFT.sum(axis=1))
    with pytest.raises(se.RightsError, match="the tensor A belongs to the role postgres"):
        citus.tensor("A", LEFT)
        se.connect(low).tensor("A", LEFT)


def test_views_of_others_are_not(citus: se.Database, low: psycopg.Connection) -> None:
    low.execute("CREATE TABLE entries (i BIGINT, j BIGINT, v FLOAT8); INSERT INTO entries VALUES (0, 0, 1)")
    low.execute("SELECT create_distributed_table('entries', 'i')")
    low.execute("CREATE FUNCTION lows.evil(x FLOAT8) RETURNS FLOAT8 LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$")
    low.execute("CREATE VIEW ev AS SELECT i, j, lows.evil(v) AS v FROM entries")
    se.connect(low).tensor_from_table("EV", "ev", ["i", "j"], "v")
    with pytest.raises(se.RightsError, match=r"read from lows\.ev, which belongs to the role low and is no ordinary"):
        citus.run(PROGRAM)
    low.execute(
        "INSERT INTO sparseeinsum.tensors (name, axes, bounds, dtype, fill, tiles, relation, key_columns, "
        "casts, is_owned) VALUES ('F', '{i}', '{2}', 'float64', '0.0', '{1}', '{pg_catalog,pg_authid}', '{i}', "
        "false, true)"
    )
    assert citus.drop_tensor("F").relation == "pg_catalog.pg_authid"
