"""Cost constants are fitted to timed work, stored for the user and read back; a damaged file is named."""

import json
import math
import random
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
from planning_problems import CONSTANTS

import sparseeinsum as se
from sparseeinsum.api import calibration
from sparseeinsum.api.calibration import Calibration, random_plans
from sparseeinsum.cli import main
from sparseeinsum.decompose.cost import CostConstants, Work
from sparseeinsum.decompose.cost_constants import calibration_file, constants_for, store_constants
from sparseeinsum.decompose.fit import Fit, Observation, Residual, fit_constants, residuals
from sparseeinsum.environment import assets
from sparseeinsum.errors import PlanError

DEFAULT = replace(CONSTANTS, hashing_seconds_per_tuple=3e-8, fixed_seconds_per_operator=1e-3)
OVERHEAD = 0.001
KINDS = tuple(field.name for field in fields(Work))
# The default seconds of each kind of work.
UNITS = dict(zip(KINDS, DEFAULT.of_work, strict=True))


def scaled(*factors: float) -> CostConstants:
    """The default constants, each multiplied by a factor."""
    return CostConstants(*np.multiply(factors, DEFAULT.of_work))


def observations(
    true: CostConstants, kinds: Iterable[str] = KINDS, noise: float = 0.0, count: int = 84
) -> list[Observation]:
    """Queries that mainly do one kind of work each, and take the seconds that these constants predict."""
    rng = random.Random(3)
    kinds = tuple(kinds)
    records = []
    for number in range(count):
        seconds = {
            kind: 10 ** rng.uniform(-2, -1) if kind == kinds[number % len(kinds)] else 10 ** rng.uniform(-5, -3)
            for kind in kinds
        }
        work = Work(**{kind: duration / UNITS[kind] for kind, duration in seconds.items()})
        taken = (OVERHEAD + work.seconds(true)) * math.exp(rng.gauss(0, noise))
        records.append(Observation(f"program {number % 3}", f"query {number}", work, taken))
    return records


class TestFit:
    def test_defaults_that_are_right_stay(self) -> None:
        fit = fit_constants(observations(DEFAULT), DEFAULT)
        assert fit.constants.of_work == pytest.approx(DEFAULT.of_work, rel=1e-9)
        assert fit.constants.fixed_seconds_per_run == pytest.approx(OVERHEAD, rel=1e-9)
        assert worst_factor(fit) == pytest.approx(1, abs=1e-9)

    @pytest.mark.parametrize(
        "factors",
        [
            (0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4),
            (2, 0.5, 1, 1.5, 1, 0.6, 1.2),
            (0.3, 3, 2, 0.7, 1.4, 2.5, 1),
            (1, 1, 4, 0.25, 2, 1, 0.5),
        ],
        ids=str,
    )
    def test_constants_are_recovered(self, factors: tuple[float, ...]) -> None:
        true = scaled(*factors)
        fit = fit_constants(observations(true), DEFAULT)
        assert fit.constants.of_work == pytest.approx(true.of_work, rel=0.05)
        assert worst_factor(fit) < 1.1

    @pytest.mark.parametrize("factor", [2, 4, 10])
    def test_slow_machine(self, factor: float) -> None:
        """Regularisation towards the defaults does not outweigh measurements; ratios of constants are right."""
        true = scaled(*[factor] * len(KINDS))
        fit = fit_constants(observations(true), DEFAULT)
        ratios = [constant / right for constant, right in zip(fit.constants.of_work, true.of_work, strict=True)]
        assert 0.8 < min(ratios) <= max(ratios) < 1.05
        assert max(ratios) / min(ratios) < 1.1

    def test_noise_of_a_tenth(self) -> None:
        true = scaled(2, 0.5, 1, 1.5, 0.8, 1.3, 0.7)
        fit = fit_constants(observations(true, noise=0.1), DEFAULT)
        assert fit.constants.of_work == pytest.approx(true.of_work, rel=0.15)

    @pytest.mark.parametrize("missing", KINDS)
    def test_work_that_was_not_done_keeps_its_default(self, missing: str) -> None:
        true = scaled(2, 0.5, 1, 1.5, 0.8, 1.3, 0.7)
        fit = fit_constants(observations(true, [kind for kind in KINDS if kind != missing]), DEFAULT)
        done = {kind: Work(**{kind: 1.0}).seconds for kind in KINDS}
        assert done[missing](fit.constants) == pytest.approx(done[missing](DEFAULT), rel=1e-6)
        for kind in KINDS:
            if kind != missing:
                assert done[kind](fit.constants) == pytest.approx(done[kind](true), rel=0.06)

    def test_constants_of_little_work_stay_positive(self) -> None:
        """The share of this work is below the noise, so that plain least squares might fit 0."""
        rng = random.Random(8)
        timed = [
            Observation(
                "", "", Work(tuples=10**6 * (1 + number), bytes_moved=1000.0 * rng.random()), 0.01 * (1 + number)
            )
            for number in range(20)
        ]
        fit = fit_constants(timed, DEFAULT)
        assert fit.constants.fixed_seconds_per_tuple == pytest.approx(1e-8, rel=0.02)
        assert all(
            0.9 < constant / default < 1.1
            for constant, default in zip(fit.constants.of_work, DEFAULT.of_work, strict=True)
        )

    def test_expected_seconds(self) -> None:
        fit = fit_constants(observations(DEFAULT), DEFAULT)
        query = Observation("", "", Work(tuples=10**8, matrix_operations=10**10), 1.0)
        assert fit.expected(query) == pytest.approx(OVERHEAD + 1.0 + 0.2, rel=1e-6)

    def test_outliers_hardly_count(self) -> None:
        timed = observations(DEFAULT)
        disturbed = replace(timed[7], seconds=20 * timed[7].seconds)
        fit = fit_constants([*timed[:7], disturbed, *timed[8:]], DEFAULT)
        assert fit.constants.of_work == pytest.approx(DEFAULT.of_work, rel=0.25)


class TestResiduals:
    def test_factors_have_the_larger_above(self) -> None:
        for expected in (1.0, 4.0):
            residual = Residual(Observation("", "", Work(), 2.0), expected, predicted=expected / 3)
            assert residual.fit_error == 2
            assert residual.prediction_error == pytest.approx(max(expected / 6, 6 / expected))

    def test_residuals_predict_a_program_from_the_others(self) -> None:
        """Only one program hashes, at three times the default cost: without it, no observation shows this."""
        plain = [kind for kind in KINDS if kind != "hashed_tuples"]
        others = [replace(observation, program="others") for observation in observations(DEFAULT, plain)]
        true = scaled(1, 1, 1, 1, 1, 3, 1)
        hashing = [
            replace(observation, program="hashing") for observation in observations(true, ["hashed_tuples"], count=12)
        ]
        results = residuals(fit_constants(others + hashing, DEFAULT), DEFAULT)
        assert [residual.observation for residual in results] == others + hashing
        assert max(residual.fit_error for residual in results) < 1.2
        assert all(residual.prediction_error < 1.2 for residual in results if residual.observation.program == "others")
        assert all(
            2 < residual.prediction_error < 3.1 for residual in results if residual.observation.program == "hashing"
        )


def worst_factor(fit: Fit) -> float:
    """The larger of predicted and measured seconds, divided by the smaller."""
    return max(residual.fit_error for residual in residuals(fit, DEFAULT))


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder of settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "sparseeinsum" / "calibration-duckdb.json"


@pytest.mark.engines("duckdb", reason="the constants are DuckDB's")
class TestStored:
    def test_defaults_without_calibration(self, config: Path) -> None:
        content = json.loads(assets.read("stats/duckdb/constants.json"))
        assert constants_for("duckdb") == CostConstants(**content["constants"])
        assert "plans" in content["origin"]
        assert not config.exists()

    def test_stored_constants_are_read_back(self, config: Path) -> None:
        assert store_constants("duckdb", DEFAULT, "a test") == config == calibration_file("duckdb")
        assert constants_for("duckdb") == DEFAULT
        assert json.loads(config.read_text(encoding="utf-8"))["origin"] == "a test"

    def test_calibration_stores_the_fit(self, config: Path) -> None:
        fit = fit_constants(observations(scaled(*[2] * len(KINDS))), DEFAULT)
        calibration = Calibration(fit, DEFAULT, (), "a test", "duckdb")
        assert calibration.store() == config
        assert constants_for("duckdb") == calibration.fit.constants

    def test_an_earlier_calibration_without_the_seconds_of_a_run(self, config: Path) -> None:
        seconds = constants_for("duckdb").fixed_seconds_per_run
        store_constants("duckdb", DEFAULT, "a test")
        content = json.loads(config.read_text(encoding="utf-8"))
        del content["constants"]["fixed_seconds_per_run"]
        config.write_text(json.dumps(content), encoding="utf-8")
        assert seconds > 0
        assert constants_for("duckdb") == replace(DEFAULT, fixed_seconds_per_run=seconds)

    def test_plans_are_priced_with_them(self, config: Path, db: se.Database) -> None:
        db.tensor("A", np.eye(2))
        assert not config.exists()
        before = db.plan("B[i] = sum(A[i, j])", pin={"B": "IJ"}, layout="any")
        store_constants("duckdb", CostConstants(5.0, 0, 0, 0, 0, 0, 0), "a test")
        after = db.plan("B[i] = sum(A[i, j])", pin={"B": "IJ"}, layout="any")
        assert after.data.decomposed.work == before.data.decomposed.work
        assert after.cost == pytest.approx(5 * after.data.decomposed.work.tuples)

    @pytest.mark.parametrize(
        "content",
        [
            "",
            "{",
            "[]",
            "{}",
            '{"constants": null}',
            '{"constants": {}}',
            '{"constants": {"transfer_seconds_per_byte": 1}}',
            json.dumps({"constants": {**dict.fromkeys(DEFAULT.__slots__, 1), "another": 1}}),
            json.dumps({"constants": dict.fromkeys(DEFAULT.__slots__, "fast")}),
            json.dumps({"constants": dict.fromkeys(DEFAULT.__slots__, None)}),
            json.dumps({"constants": dict.fromkeys(DEFAULT.__slots__, -1)}),
            json.dumps({"constants": dict.fromkeys(DEFAULT.__slots__, math.nan)}),
        ],
    )
    def test_damaged_file_is_named_and_how_to_mend_it(self, config: Path, content: str) -> None:
        config.parent.mkdir()
        config.write_text(content, encoding="utf-8")
        with pytest.raises(PlanError) as caught:
            constants_for("duckdb")
        assert str(config) in str(caught.value)
        assert "delete it and run `sparseeinsum calibrate`" in str(caught.value)

    def test_damaged_bytes(self, config: Path) -> None:
        config.parent.mkdir()
        config.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(PlanError, match="cannot be read"):
            constants_for("duckdb")

    def test_plan_names_a_damaged_file_and_works_without_it(self, config: Path, db: se.Database) -> None:
        db.tensor("A", np.eye(2))
        config.parent.mkdir()
        config.write_text("{", encoding="utf-8")
        with pytest.raises(PlanError, match=r"calibration-duckdb\.json"):
            db.plan("B[i] = sum(A[i, j])")
        config.unlink()
        assert db.plan("B[i] = sum(A[i, j])").cost > 0


def test_random_plans_are_the_same_in_every_call(db: se.Database) -> None:
    db.tensor("A", np.eye(2))
    program = se.program("B[i, k] = sum(A[i, j] * A[j, k])\nC[i] = sum(B[i, k])")
    first, second = ([plan.notation() for plan in random_plans(db, program, 6)] for _ in range(2))
    assert first == second
    assert len({tuple(notation) for notation in first}) > 1


def test_a_server_is_measured_and_left_as_it_was(
    postgres_urls: dict[str, str], config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, inputs = calibration._programs()["matrix chain"]
    small = {name: np.asarray(matrix)[:24, :24] for name, matrix in inputs.items()}
    monkeypatch.setattr(calibration, "_programs", lambda: dict.fromkeys(("matrix chain", "another"), (text, small)))
    url = postgres_urls["db"]
    query = "SELECT COUNT(*) FROM pg_class WHERE relname ILIKE '%matrix_chain%' OR relname = 'tensors'"
    assert main(["calibrate", "--database", url]) == 0
    assert "on PostgreSQL 1" in " ".join(capsys.readouterr().out.split())
    with psycopg.connect(url) as connection:
        assert connection.execute(query).fetchall() == [(0,)]
    assert not config.exists()
    assert json.loads(config.with_name("calibration-postgresql.json").read_text(encoding="utf-8"))["constants"]


def test_files_are_not_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--database", "graph.duckdb"]) == 1
    assert "graph.duckdb is not a PostgreSQL database" in capsys.readouterr().err
