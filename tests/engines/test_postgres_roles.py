"""PostgreSQL roles change only their own catalogue entries, and never run another role's code."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import psycopg
import pytest
from postgres_server import PostgresServer
from psycopg import errors

import sparseeinsum as se
from sparseeinsum.cli import main

DATABASE = "rights"
PROGRAM = "Y[i] = 2 * EV[i]"

# A function that reports the role that runs it, in any transaction.
_EVIL = """
CREATE FUNCTION lows.evil(x FLOAT8) RETURNS FLOAT8 LANGUAGE plpgsql {volatility} AS $$
BEGIN
  RAISE WARNING 'evil ran as %', current_user;
  RETURN x;
END $$"""


@dataclass
class Roles:
    """Sessions of the roles of a database, and the roles that ran the reporting function."""

    server: PostgresServer
    boss: psycopg.Connection
    low: psycopg.Connection
    warned: list[str]

    def as_low(self) -> se.Database:
        return se.connect(self.low)

    def as_boss(self) -> se.Database:
        return se.connect(self.boss)


def _connected(server: PostgresServer, role: str, warned: list[str]) -> psycopg.Connection:
    connection = psycopg.connect(f"host={server.folder} user={role} dbname={DATABASE}", autocommit=True)
    connection.add_notice_handler(lambda notice: warned.append(str(notice.message_primary)))
    return connection


@pytest.fixture
def roles(postgres_python: PostgresServer) -> Iterator[Roles]:
    """A superuser with a table, the role low with a schema, and a catalogue that both may use."""
    with postgres_python.connect() as maintenance:
        maintenance.execute(f"CREATE DATABASE {DATABASE}")
        maintenance.execute("CREATE ROLE low LOGIN; CREATE ROLE other LOGIN")
    warned: list[str] = []
    try:
        with (
            _connected(postgres_python, "postgres", warned) as boss,
            _connected(postgres_python, "low", warned) as low,
        ):
            boss.execute("CREATE EXTENSION sparseeinsum_python CASCADE; CREATE SCHEMA lows AUTHORIZATION low")
            boss.execute("CREATE TABLE public.payroll (i BIGINT, v FLOAT8); INSERT INTO payroll VALUES (0, 1), (1, 2)")
            se.connect(boss).grant("low")
            low.execute("SET search_path = lows, public; CREATE TABLE ev_rows (i BIGINT, v FLOAT8)")
            low.execute("INSERT INTO ev_rows VALUES (0, 1), (1, 2); GRANT USAGE ON SCHEMA lows TO PUBLIC")
            warned.clear()
            yield Roles(postgres_python, boss, low, warned)
    finally:
        with postgres_python.connect() as maintenance:
            maintenance.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
            maintenance.execute("DROP ROLE low; DROP ROLE other")


# Relations that run their owner's function when they are read: its volatility, and the statement that uses it.
TRAPS = {
    "view": ("VOLATILE", "CREATE VIEW ev AS SELECT i, lows.evil(v) AS v FROM ev_rows"),
    "policy": (
        "VOLATILE",
        "CREATE TABLE ev AS TABLE ev_rows; ALTER TABLE ev ENABLE ROW LEVEL SECURITY; "
        "CREATE POLICY p ON ev USING (lows.evil(v) > 0)",
    ),
    # PostgreSQL computes constant expressions of these three while it plans a query of the table.
    "index": ("IMMUTABLE", "CREATE TABLE ev AS TABLE ev_rows; CREATE INDEX ON ev (lows.evil(1))"),
    "statistics": (
        "IMMUTABLE",
        "CREATE TABLE ev AS TABLE ev_rows; CREATE STATISTICS st ON (lows.evil(1)), v FROM ev",
    ),
    "constraint": ("IMMUTABLE", "CREATE TABLE ev AS TABLE ev_rows; ALTER TABLE ev ADD CHECK (lows.evil(1) = 1)"),
    "type": (
        "VOLATILE",
        "CREATE DOMAIN mine AS FLOAT8; CREATE TABLE ev (i BIGINT, v mine); INSERT INTO ev VALUES (0, 1)",
    ),
    "children": ("VOLATILE", "CREATE TABLE ev AS TABLE ev_rows; CREATE TABLE child () INHERITS (ev)"),
}


def set_trap(roles: Roles, name: str) -> None:
    volatility, statements = TRAPS[name]
    roles.low.execute(_EVIL.format(volatility=volatility))
    roles.low.execute(statements)
    roles.boss.execute("SET constraint_exclusion = on")


def _python(ask: Callable[[se.Database], object]) -> Callable[[Roles], object]:
    return lambda roles: ask(roles.as_boss())


def _server(query: str) -> Callable[[Roles], object]:
    return lambda roles: roles.boss.execute(query).fetchall()


READERS: list[Callable[[Roles], object]] = [
    _python(lambda db: db.run(PROGRAM)),
    _python(lambda db: db.plan(PROGRAM)),
    _python(lambda db: db.statistics("EV")),
    _python(lambda db: db.relation("EV")),
    _server(f"SELECT * FROM sparseeinsum.einsum('{PROGRAM}') AS t(i bigint, val float8)"),
    _server(f"SELECT * FROM sparseeinsum.einsum_into('{PROGRAM}')"),
    _server(f"SELECT * FROM sparseeinsum.explain('{PROGRAM}')"),
    _server(f"SELECT sparseeinsum.einsum_sql('{PROGRAM}')"),
]
REFUSED = (se.RightsError, errors.InsufficientPrivilege)


@pytest.mark.parametrize("trap", TRAPS)
def test_code_of_other_roles_never_runs(roles: Roles, trap: str) -> None:
    set_trap(roles, trap)
    roles.as_low().tensor_from_table("EV", "ev", ["i"], "v", shape=[2], dtype="float64")
    roles.low.execute("GRANT SELECT ON ev TO PUBLIC")
    roles.warned.clear()
    for read in READERS:
        with pytest.raises(REFUSED, match=r"tensor EV is read from lows\.ev, which belongs to the role low and "):
            read(roles)
    assert roles.warned == []
    assert roles.as_low().run(PROGRAM)["Y"].to_numpy()[0] == 2


@pytest.mark.parametrize("trap", TRAPS)
def test_code_of_other_roles_never_runs_in_tables_read_by_name(roles: Roles, trap: str) -> None:
    set_trap(roles, trap)
    roles.low.execute("GRANT SELECT ON ev TO PUBLIC")
    roles.boss.execute("SET search_path = public, lows")
    roles.warned.clear()
    db = roles.as_boss()
    calls: list[Callable[[], object]] = [
        lambda: db.run("Y[i] = 2 * ev[i]"),
        lambda: db.run('tensor E[i] from "ev"\nY[i] = 2 * E[i]'),
        lambda: db.tensor_from_table("E", "ev", ["i"], "v"),
        lambda: db.tensor("E", "lows.ev", index=["i"], value="v"),
        lambda: db.program("Y = ev"),
    ]
    for ask in calls:
        with pytest.raises(se.RightsError, match="belongs to the role low"):
            ask()
    assert roles.warned == []


def test_ordinary_tables_of_others_are_read(roles: Roles) -> None:
    roles.as_low().tensor("EV", np.array([1.0, 2.0]))
    with pytest.raises(se.EngineError, match="permission denied for table ev"):
        grant_to_other(roles)
        roles.boss.execute("SET ROLE other")
        roles.as_boss().run(PROGRAM)
    roles.low.execute("GRANT SELECT ON ev TO other")
    np.testing.assert_array_equal(roles.as_boss().run(PROGRAM)["Y"].to_numpy(), [2, 4])
    roles.boss.execute("RESET ROLE")
    np.testing.assert_array_equal(roles.as_boss().run(PROGRAM)["Y"].to_numpy(), [2, 4])


def grant_to_other(roles: Roles) -> None:
    """Grant rights with the command line."""
    assert main(["grant", "other", "--database", roles.server.url(DATABASE)]) == 0


def test_catalogue_entries_give_no_rights_to_tables(roles: Roles) -> None:
    """A role that enters another role's table in the catalogue does not make others read, replace or drop it."""
    roles.low.execute(
        "INSERT INTO sparseeinsum.tensors (name, axes, bounds, dtype, fill, tiles, relation, key_columns, "
        "value_column, casts, is_owned) VALUES "
        "('payroll', '{i}', '{2}', 'float64', '0.0', '{1}', '{public,payroll}', '{i}', 'v', false, true), "
        "('F', '{i}', '{2}', 'float64', '0.0', '{1}', '{public,\"f()\"}', '{i}', 'v', false, true)"
    )
    db = roles.as_boss()
    db.tensor("P", np.ones(2))
    for ask in (lambda: db.run("Y[i] = payroll[i]"), lambda: db.statistics("payroll")):
        with pytest.raises(se.RightsError, match="belongs to the role postgres, but the role low entered it"):
            ask()
    with pytest.raises(se.CatalogueError, match=r"no longer be read from public\.\"f\(\)\""):
        db.run("Y[i] = F[i]")
    with pytest.raises(errors.DuplicateTable, match=r"there is a table or view public\.payroll that was not made"):
        roles.boss.execute(
            "SELECT * FROM sparseeinsum.einsum_into('payroll[i] = 2 * P[i]', replace => true)"
        ).fetchall()
    with pytest.raises(se.CatalogueError, match="there is a table or view payroll that was not loaded"):
        db.tensor("payroll", np.ones(2))
    assert db.drop_tensor("payroll").tensor.name == "payroll"
    assert roles.boss.execute("SELECT COUNT(*) FROM payroll").fetchall() == [(2,)]


def test_rows_belong_to_who_entered_them(roles: Roles) -> None:
    roles.as_boss().tensor("A", np.ones(2))
    roles.boss.execute("GRANT ALL ON a TO low")
    low = roles.as_low()
    low.tensor("B", np.ones(2))
    calls: list[Callable[[], object]] = [
        lambda: low.drop_tensor("A"),
        lambda: low.tensor("A", np.zeros(2)),
        lambda: low.tensor_from_table("A", "ev_rows", ["i"], "v"),
    ]
    for ask in calls:
        with pytest.raises(se.RightsError, match="the tensor A belongs to the role postgres"):
            ask()
    with pytest.raises(errors.InsufficientPrivilege, match="the tensor A belongs to the role postgres"):
        roles.low.execute("SELECT * FROM sparseeinsum.einsum_into('A[i] = 2 * B[i]', replace => true)").fetchall()
    roles.low.execute("DELETE FROM sparseeinsum.tensors")
    with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table tensors"):
        roles.low.execute("UPDATE sparseeinsum.tensors SET owner = 'low'")
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security policy"):
        roles.low.execute("INSERT INTO sparseeinsum.dictionaries VALUES ('d', 'TEXT', 0, '{a,b}', 'postgres')")
    np.testing.assert_array_equal(roles.as_boss().run("Y[i] = A[i]")["Y"].to_numpy(), [1, 1])


def test_dictionaries_of_others_are_read_and_not_extended(roles: Roles) -> None:
    frame = pd.DataFrame({"who": ["al", "bob"], "v": [1.0, 2.0]})
    low, boss = roles.as_low(), roles.as_boss()
    low.tensor("EV", frame)
    roles.low.execute(_EVIL.format(volatility="VOLATILE"))
    roles.low.execute("""
        CREATE FUNCTION lows.trap() RETURNS TRIGGER LANGUAGE plpgsql AS
        $$ BEGIN PERFORM lows.evil(1); RETURN new; END $$;
        CREATE TRIGGER t BEFORE INSERT ON sparseeinsum_dictionaries.dictionary_who
        FOR EACH ROW EXECUTE FUNCTION lows.trap()""")
    assert boss.run("Y[who] = 2 * EV[who]")["Y"].keys("who").to_pylist() == ["al", "bob"]
    boss.tensor("Same", frame)
    with pytest.raises(se.RightsError, match="belongs to the role low, whose triggers would run with your rights"):
        boss.tensor("More", pd.DataFrame({"who": ["zoe"], "v": [1.0]}))
    assert roles.warned == []
    boss.tensor("Own", pd.DataFrame({"name": ["zoe"], "v": [1.0]}))
    with pytest.raises(se.RightsError, match="the dictionary name belongs to the role postgres, which can add keys"):
        roles.boss.execute("GRANT SELECT, INSERT ON sparseeinsum_dictionaries.dictionary_name TO low")
        low.tensor("More", pd.DataFrame({"name": ["kim"], "v": [1.0]}))


def test_members_share(roles: Roles) -> None:
    """Views and tensors of a role count as its members' own; a superuser is a member of no role."""
    set_trap(roles, "view")
    roles.boss.execute("GRANT low TO other")
    roles.as_low().tensor_from_table("EV", "ev", ["i"], "v")
    grant_to_other(roles)
    roles.boss.execute("SET ROLE other; SET search_path = lows, public")
    np.testing.assert_array_equal(roles.as_boss().run(PROGRAM)["Y"].to_numpy(), [2, 4])
    roles.as_boss().drop_tensor("EV")
    roles.as_boss().tensor_from_table("EV", "ev", ["i"], "v")
    roles.boss.execute("RESET ROLE; GRANT low TO postgres")
    roles.warned.clear()
    with pytest.raises(se.RightsError, match="which belongs to the role low and is no ordinary table"):
        roles.as_boss().run(PROGRAM)
    assert roles.warned == []


def test_members_enter_the_tables_of_their_role(roles: Roles) -> None:
    """A tensor on a role's table is read by all members, whichever of them entered it."""
    roles.boss.execute("CREATE ROLE team; GRANT team TO low, other; CREATE TABLE shared (i BIGINT, v FLOAT8)")
    try:
        roles.boss.execute("INSERT INTO shared VALUES (0, 1), (1, 2); ALTER TABLE shared OWNER TO team")
        grant_to_other(roles)
        roles.as_low().tensor_from_table("EV", "shared", ["i"], "v")
        roles.boss.execute("SET ROLE other")
        np.testing.assert_array_equal(roles.as_boss().run(PROGRAM)["Y"].to_numpy(), [2, 4])
        roles.boss.execute("RESET ROLE; REVOKE team FROM low")
        with pytest.raises(se.RightsError, match="belongs to the role team, but the role low entered it"):
            roles.as_boss().run(PROGRAM)
    finally:
        roles.boss.execute("RESET ROLE; DROP TABLE shared; DROP ROLE team")


def test_functions_in_other_schemas_are_ignored(roles: Roles) -> None:
    """Whatever the search_path has first, the package's SQL calls functions of PostgreSQL and of the extension."""
    roles.low.execute("""
        CREATE FUNCTION lows.trap(x TEXT) RETURNS FLOAT8 LANGUAGE plpgsql AS
        $$ BEGIN RAISE WARNING 'evil ran as %', current_user; RETURN 1; END $$;
        CREATE FUNCTION lows.sum_step(s FLOAT8, x FLOAT8) RETURNS FLOAT8 LANGUAGE plpgsql AS
        $$ BEGIN RAISE WARNING 'evil ran as %', current_user; RETURN x; END $$;
        CREATE AGGREGATE lows.sum(FLOAT8) (SFUNC = lows.sum_step, STYPE = FLOAT8);
        CREATE AGGREGATE lows.max(BIGINT) (SFUNC = int8larger, STYPE = BIGINT);
        CREATE FUNCTION lows.times(a FLOAT8, b FLOAT8) RETURNS FLOAT8 LANGUAGE plpgsql AS
        $$ BEGIN RAISE WARNING 'evil ran as %', current_user; RETURN a; END $$;
        CREATE OPERATOR lows.* (LEFTARG = FLOAT8, RIGHTARG = FLOAT8, FUNCTION = lows.times);
        CREATE FUNCTION lows.current_schemas(x BOOLEAN) RETURNS NAME[] LANGUAGE plpgsql AS
        $$ BEGIN RAISE WARNING 'evil ran as %', current_user; RETURN ARRAY['public']; END $$;
        CREATE FUNCTION lows.path(a JSONB, b TEXT) RETURNS TEXT LANGUAGE plpgsql AS
        $$ BEGIN RAISE WARNING 'evil ran as %', current_user; RETURN NULL; END $$;
        CREATE OPERATOR lows.#>> (LEFTARG = JSONB, RIGHTARG = TEXT, FUNCTION = lows.path);
        CREATE FUNCTION lows.tensor_sum(x FLOAT8[]) RETURNS FLOAT8 LANGUAGE plpgsql AS
        $$ BEGIN RAISE WARNING 'evil ran as %', current_user; RETURN 1; END $$;
    """)
    roles.boss.execute("SET search_path = lows, public, pg_catalog")
    program = "S[] = sum(2 * payroll[i])\nM[i] = max[j](payroll[i] * B[i, j])"
    db = roles.as_boss()
    roles.boss.execute("SET search_path = public, pg_catalog, lows")
    db.tensor("B", np.ones((2, 3)))
    roles.boss.execute("SET search_path = lows, public, pg_catalog")
    for _ in range(2):
        results = db.run(program)
        assert results["S"].to_numpy() == 6
        np.testing.assert_array_equal(results["M"].to_numpy(), [1, 2])
    roles.boss.execute("SET search_path = lows, public, pg_catalog")
    assert roles.boss.execute("SHOW search_path").fetchall() == [("lows, public, pg_catalog",)]
    assert len(roles.boss.execute("SELECT sparseeinsum.einsum_sql('S[] = sum(2 * payroll[i])')").fetchall()) == 1
    assert roles.warned == []


def test_a_catalogue_of_another_role(roles: Roles) -> None:
    roles.boss.execute("DROP SCHEMA sparseeinsum CASCADE; DROP SCHEMA sparseeinsum_dictionaries")
    roles.boss.execute("GRANT CREATE ON DATABASE rights TO low")
    roles.as_low().tensor("EV", np.ones(2))
    for ask in (lambda: roles.as_boss().run(PROGRAM), lambda: roles.as_boss().tensor("A", np.ones(2))):
        with pytest.raises(se.RightsError, match=r"sparseeinsum\.tensors of this database belongs to the role low"):
            ask()
    roles.boss.execute("ALTER DATABASE rights OWNER TO low; GRANT USAGE ON SCHEMA sparseeinsum TO other")
    with pytest.raises(se.RightsError, match="belongs to the role low"):
        roles.as_boss().tensors()
    roles.low.execute("GRANT SELECT ON sparseeinsum.tensors TO other")
    roles.boss.execute("SET ROLE other")
    assert list(roles.as_boss().tensors()) == ["EV"]


def test_errors_without_rights_name_the_remedy(roles: Roles) -> None:
    roles.as_boss().tensor("A", np.ones(2))
    roles.boss.execute("SET ROLE other")
    with pytest.raises(se.RightsError, match="let their owner run `sparseeinsum grant ROLE --database URL`"):
        roles.as_boss().run("Y[i] = A[i]")
    with pytest.raises(errors.InsufficientPrivilege, match="permission denied for schema sparseeinsum"):
        roles.boss.execute("SELECT * FROM sparseeinsum.einsum_into('Y[i] = A[i]')").fetchall()
    roles.boss.execute("RESET ROLE; GRANT USAGE ON SCHEMA sparseeinsum TO other; SET ROLE other")
    with pytest.raises(errors.InsufficientPrivilege, match="this role may not use the tensors of this database"):
        roles.boss.execute("SELECT * FROM sparseeinsum.einsum_into('Y[i] = A[i]')").fetchall()
    with pytest.raises(se.EngineError, match='role "nobody" does not exist'):
        roles.boss.execute("RESET ROLE")
        roles.as_boss().grant("nobody")
    roles.as_boss().grant("public")
    roles.boss.execute("GRANT SELECT ON a TO other; SET ROLE other")
    np.testing.assert_array_equal(roles.as_boss().run("Y[i] = A[i]")["Y"].to_numpy(), [1, 1])


def test_duckdb_has_no_roles() -> None:
    with se.connect() as db, pytest.raises(se.EngineError, match="DuckDB has no roles"):
        db.grant("me")
