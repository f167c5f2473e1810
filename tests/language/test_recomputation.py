"""Gradients with checkpoints compute other forward values again, and equal those without."""

import numpy as np
import pytest

import sparseeinsum as se

PROGRAM = """
H1[i, h] = tanh(sum(X[i, f] * W1[f, h]))
H2[i, h] = sigmoid(sum(H1[i, f] * W2[f, h]))
H3[i, h] = H1[i, h] + exp(H2[i, h])
loss[] = sum(H3[i, h] ^ 2 * H2[i, h])
"""


@pytest.fixture
def network(db: se.Database) -> se.Database:
    """A database with the inputs of PROGRAM."""
    rng = np.random.default_rng(0)
    for name, shape in (("X", (6, 4)), ("W1", (4, 3)), ("W2", (3, 3))):
        db.tensor(name, rng.normal(size=shape))
    return db


@pytest.mark.parametrize("checkpoint", [[], "H1", ["H1", "H3"], ["H1", "H2", "H3"]])
def test_gradients_equal_those_without_checkpoints(network: se.Database, checkpoint: str | list[str]) -> None:
    expected = network.run(se.gradient(PROGRAM, of="loss", by=["X", "W1", "W2"]))
    program = se.gradient(PROGRAM, of="loss", by=["X", "W1", "W2"], checkpoint=checkpoint)
    results = network.run(program)
    for name in ("loss", "d_X", "d_W1", "d_W2"):
        np.testing.assert_allclose(results[name].to_numpy(), expected[name].to_numpy(), rtol=1e-12)
    again = network.run(str(program))
    np.testing.assert_allclose(again["d_X"].to_numpy(), expected["d_X"].to_numpy(), rtol=1e-12)


def test_plans_compute_again_what_is_no_checkpoint(network: se.Database) -> None:
    program = se.gradient(PROGRAM, of="loss", by="W1", checkpoint="H1")
    names = [line.split("[")[0] for line in network.plan(program).notation()]
    assert "H2_again" in names
    assert "H1_again" not in names
    shared = se.gradient(PROGRAM, of="loss", by="W1")
    assert not any("_again" in line for line in network.plan(shared).notation())


def test_gradients_of_gradients_compute_again(network: se.Database) -> None:
    first = se.gradient(f"{PROGRAM}", of="loss", by="W1", checkpoint="H1")
    second = f"{first}\nsize[] = sum(d_W1[f, h] ^ 2)"
    expected = network.run(se.gradient(second, of="size", by="W2"))["d_W2"].to_numpy()
    checkpointed = network.run(se.gradient(second, of="size", by="W2", checkpoint=["H1", "H2"]))["d_W2"].to_numpy()
    np.testing.assert_allclose(checkpointed, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("checkpoint", "message"),
    [
        ("H2_summ", "there is no H2_summ to keep as a checkpoint in the program; did you mean H2_sum"),
        (["H1", "X"], "X is an input, which gradients read in any case; checkpoints are results"),
    ],
)
def test_checkpoints_are_results(checkpoint: str | list[str], message: str) -> None:
    with pytest.raises(se.SemanticsError, match=message):
        se.gradient(PROGRAM, of="loss", by="W1", checkpoint=checkpoint)
