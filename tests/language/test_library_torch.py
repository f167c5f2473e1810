"""The layers, losses and optimisers that programs include equal those of torch, where torch is installed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se

torch = pytest.importorskip("torch", reason="torch is large; the tests against numpy run without it")

Array = NDArray[Any]

RNG = np.random.default_rng(11)
INPUTS: dict[str, Array] = {
    "X": RNG.normal(size=(7, 4)),
    "W": RNG.normal(size=(4, 5)),
    "gain": RNG.normal(size=4),
    "shift": RNG.normal(size=4),
    "Q": RNG.normal(size=(2, 7, 4)),
    "K": RNG.normal(size=(2, 7, 4)),
    "V": RNG.normal(size=(2, 7, 3)),
    "Z": RNG.normal(size=(7, 5)),
    "Y": np.eye(5)[RNG.integers(0, 5, 7)],
    "scores": RNG.normal(size=9),
    "truth": (RNG.random(9) < 0.5).astype(float),
    "A": np.eye(7) + (RNG.random((7, 7)) < 0.4) * RNG.random((7, 7)),
    "W2": RNG.normal(size=(4, 5)),
    "b": RNG.normal(size=5),
    "own": RNG.normal(size=5),
    "neighbour": RNG.normal(size=5),
}
FUNCTIONAL = torch.nn.functional


def gat(i: dict[str, Any]) -> Any:  # noqa: ANN401  # a tensor of torch
    projected = i["X"] @ i["W"]
    sums = FUNCTIONAL.leaky_relu((projected @ i["own"])[:, None] + projected @ i["neighbour"], 0.2)
    return torch.softmax(sums.masked_fill(i["A"] == 0, -torch.inf), 1) @ projected


CALLS: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("R[i, o] = linear(X, W)[i, o]", lambda i: FUNCTIONAL.linear(i["X"], i["W"].T)),
    ("R[i, o] = affine(X, W, b)[i, o]", lambda i: FUNCTIONAL.linear(i["X"], i["W"].T, i["b"])),
    ("R[i, o] = gcn(A, X, W)[i, o]", lambda i: torch.sparse.mm(i["A"].to_sparse(), i["X"] @ i["W"])),
    (
        "R[i, o] = sage(A, X, W, W2)[i, o]",
        lambda i: i["X"] @ i["W"] + i["A"] @ i["X"] / i["A"].sum(1, keepdim=True).clamp(1) @ i["W2"],
    ),
    ("R[i, o] = gat(A, X, W, own, neighbour)[i, o]", gat),
    (
        "R[i, o] = attention(X, X, X)[i, o]",
        lambda i: FUNCTIONAL.scaled_dot_product_attention(i["X"], i["X"], i["X"]),
    ),
    (
        "R[i, o] = causal_attention(X, X, X)[i, o]",
        lambda i: FUNCTIONAL.scaled_dot_product_attention(i["X"], i["X"], i["X"], is_causal=True),
    ),
    ("R[i, f] = leaky_relu(X)[i, f]", lambda i: FUNCTIONAL.leaky_relu(i["X"])),
    ("R[i, f] = gelu(X)[i, f]", lambda i: FUNCTIONAL.gelu(i["X"])),
    (
        "R[i, f] = scaled_layer_norm(X, gain, shift)[i, f]",
        lambda i: FUNCTIONAL.layer_norm(i["X"], (4,), i["gain"], i["shift"]),
    ),
    (
        "R[h, i, o] = multi_head_attention(Q, K, V)[h, i, o]",
        lambda i: FUNCTIONAL.scaled_dot_product_attention(i["Q"], i["K"], i["V"]),
    ),
    ("R[] = cross_entropy(Z, Y)[]", lambda i: FUNCTIONAL.cross_entropy(i["Z"], i["Y"].argmax(1))),
    (
        "R[] = binary_cross_entropy(scores, truth)[]",
        lambda i: FUNCTIONAL.binary_cross_entropy_with_logits(i["scores"], i["truth"]),
    ),
    ("R[] = squared_error(scores, truth)[]", lambda i: FUNCTIONAL.mse_loss(i["scores"], i["truth"])),
    ("R[] = l2(W)[]", lambda i: torch.linalg.matrix_norm(i["W"]) ** 2 / 2),
]


@pytest.mark.parametrize(("text", "oracle"), CALLS, ids=[text for text, _ in CALLS])
def test_functions(shared_db: se.Database, text: str, oracle: Callable[[dict[str, Any]], Any]) -> None:
    for name, array in INPUTS.items():
        shared_db.tensor(name, array)
    expected = oracle({name: torch.from_numpy(array) for name, array in INPUTS.items()})
    result = shared_db.run(f'include "nn"\n{text}')["R"].to_numpy()
    np.testing.assert_allclose(result, expected.numpy(), rtol=1e-10, atol=1e-12)


OPTIMISERS: dict[str, tuple[str, Callable[[list[Any]], Any]]] = {
    "sgd": ("next_W = sgd(W, gradient(loss, W), 0.1)", lambda weights: torch.optim.SGD(weights, lr=0.1)),
    "momentum": (
        "next_M = velocity(M, gradient(loss, W)); next_W = sgd(W, next_M, 0.1)",
        lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
    ),
    "adam": (
        "next_M = adam_mean(M, gradient(loss, W)); next_S = adam_square(S, gradient(loss, W)); "
        "next_W = adam(W, next_M, next_S, step, 0.1)",
        lambda weights: torch.optim.Adam(weights, lr=0.1),
    ),
    "adamw": (
        "next_M = adam_mean(M, gradient(loss, W)); next_S = adam_square(S, gradient(loss, W)); "
        "next_W = adamw(W, next_M, next_S, step, 0.1, 0.2)",
        lambda weights: torch.optim.AdamW(weights, lr=0.1, weight_decay=0.2),
    ),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_steps(db: se.Database, name: str) -> None:
    """Five steps of a regression."""
    text, optimiser_of = OPTIMISERS[name]
    db.tensor("X", INPUTS["X"])
    db.tensor("Z", INPUTS["Z"])
    state = ["W", *(f"{mean}" for mean in "MS" if f"next_{mean}" in text)]
    for tensor in state:
        db.tensor(tensor, INPUTS["W"] if tensor == "W" else np.zeros((4, 5)))
    loss = "loss = sum((tanh(X @ W) - Z) ^ 2)"
    db.iterate(f'include "optim"\nstate {", ".join(state)}\n{loss}\n{text.replace("; ", chr(10))}', steps=5)
    weights = torch.from_numpy(INPUTS["W"].copy()).requires_grad_()
    optimiser = optimiser_of([weights])
    for _ in range(5):
        optimiser.zero_grad()
        ((torch.tanh(torch.from_numpy(INPUTS["X"]) @ weights) - torch.from_numpy(INPUTS["Z"])) ** 2).sum().backward()
        optimiser.step()
    result = db.run("R[f, o] = 1 * W[f, o]")["R"].to_numpy()
    np.testing.assert_allclose(result, weights.detach().numpy(), rtol=1e-9)


RATES: dict[str, Callable[[Any], Any]] = {
    "step_decay(0.5, step, 2)": lambda optimiser: torch.optim.lr_scheduler.StepLR(optimiser, 2),
    "cosine_decay(0.5, step, 4)": lambda optimiser: torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 4),
    "warmup(0.5, step, 4)": lambda optimiser: torch.optim.lr_scheduler.LinearLR(optimiser, 0.25, total_iters=3),
}


@pytest.mark.parametrize("rate", RATES)
def test_rates_of_learning(db: se.Database, rate: str) -> None:
    db.tensor("W", np.ones((1, 1)))
    text = f'include "optim"\nstate W\nrate = {rate}\nnext_W = sgd(W, W, rate)'
    result = db.iterate(text, steps=5, history=["rate"])
    optimiser = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
    schedule, expected = RATES[rate](optimiser), []
    for _ in range(5):
        expected.append(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()
    np.testing.assert_allclose(result.history["rate"].to_numpy(), expected, rtol=1e-12, atol=1e-15)
