"""The layers, losses, optimisers and measures that programs include equal their definitions in numpy."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

import sparseeinsum as se
from sparseeinsum.language import program_files
from sparseeinsum.language.program_files import LIBRARIES
from sparseeinsum.operators.normal_quantile import normal_quantiles
from sparseeinsum.operators.random_numbers import threefry
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]

RNG = np.random.default_rng(5)
NODES, FEATURES, OUTPUTS = 9, 5, 4
ADJACENCY = np.triu((RNG.random((NODES, NODES)) < 0.4).astype(float), 1)
CLASSES = RNG.integers(0, OUTPUTS, NODES)
LABELLED = np.eye(OUTPUTS)[CLASSES] * (np.arange(NODES) < 7)[:, None]
INPUTS: dict[str, Array] = {
    "A": ADJACENCY + ADJACENCY.T + np.eye(NODES),
    "X": RNG.normal(size=(NODES, FEATURES)),
    "W": RNG.normal(size=(FEATURES, OUTPUTS)),
    "W2": RNG.normal(size=(FEATURES, OUTPUTS)),
    "b": RNG.normal(size=OUTPUTS),
    "own": RNG.normal(size=OUTPUTS),
    "neighbour": RNG.normal(size=OUTPUTS),
    "gain": RNG.normal(size=FEATURES),
    "shift": RNG.normal(size=FEATURES),
    "Q": RNG.normal(size=(6, 3)),
    "K": RNG.normal(size=(6, 3)),
    "V": RNG.normal(size=(6, 2)),
    "Q3": RNG.normal(size=(2, 6, 3)),
    "K3": RNG.normal(size=(2, 6, 3)),
    "V3": RNG.normal(size=(2, 6, 2)),
    "Z": RNG.normal(size=(NODES, OUTPUTS)),
    "Y": LABELLED,
    "scores": RNG.normal(size=12).round(1),
    "truth": (RNG.random(12) < 0.5).astype(float),
    "guesses": (RNG.random(12) < 0.5).astype(float),
    "G": RNG.normal(size=(FEATURES, OUTPUTS)),
    "M": RNG.normal(size=(FEATURES, OUTPUTS)),
    "S": RNG.random((FEATURES, OUTPUTS)),
    "t": np.array(3),
}


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def linear(i: dict[str, Array]) -> Array:
    return np.asarray(i["X"] @ i["W"])


def normalised(i: dict[str, Array]) -> Array:
    root = 1 / np.sqrt(i["A"].sum(1))
    return np.asarray(i["A"] * root[:, None] * root)


def scaled_layer_norm(i: dict[str, Array]) -> Array:
    x = i["X"]
    return np.asarray((x - x.mean(1)[:, None]) / np.sqrt(x.var(1)[:, None] + 1e-5) * i["gain"] + i["shift"])


def sage(i: dict[str, Array]) -> Array:
    return np.asarray(i["X"] @ i["W"] + (i["A"] @ i["X"] / i["A"].sum(1)[:, None]) @ i["W2"])


def gat(i: dict[str, Array]) -> Array:
    projected = linear(i)
    sums = (projected @ i["own"])[:, None] + projected @ i["neighbour"]
    logits = np.where(sums > 0, sums, 0.2 * sums)
    return np.asarray(softmax(np.where(i["A"] != 0, logits, -np.inf)) @ projected)


def attention(q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
    logits = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    return np.asarray(softmax(logits if mask is None else np.where(mask, logits, -np.inf)) @ v)


def cross_entropy(i: dict[str, Array]) -> Array:
    rows = i["Y"].sum(1) > 0
    return np.asarray(-np.log(softmax(i["Z"])[rows, CLASSES[rows]]).mean())


def binary_cross_entropy(i: dict[str, Array]) -> Array:
    chances = special.expit(i["scores"])
    return np.asarray(-np.mean(i["truth"] * np.log(chances) + (1 - i["truth"]) * np.log(1 - chances)))


def uniform(*keys: int | Array) -> Array:
    bits: Array = np.zeros((), np.int64)
    for key in keys:
        bits = threefry(bits, np.asarray(key, np.int64))
    return bits / 2.0**52


def matrix_draws(seed: int, step: int, shape: tuple[int, int]) -> Array:
    return uniform(seed, step, np.arange(shape[0])[:, None], np.arange(shape[1]))


def dropout(i: dict[str, Array]) -> Array:
    return np.asarray(i["X"] * (matrix_draws(7, 3, i["X"].shape) < 0.75) / 0.75)


def batch(i: dict[str, Array]) -> Array:
    part = np.floor(uniform(7, 0, np.arange(NODES)) * 4)
    return np.asarray(i["X"] * (part == 3)[:, None])


def sampled_neighbours(i: dict[str, Array]) -> Array:
    share = np.minimum(2 / (i["A"] != 0).sum(1), 1)[:, None]
    return np.asarray(i["A"] * (matrix_draws(7, 3, i["A"].shape) < share) / share)


LAYERS: list[tuple[str, Callable[[dict[str, Array]], Array]]] = [
    ("R[i, o] = linear(X, W)[i, o]", linear),
    ("R[i, o] = affine(X, W, b)[i, o]", lambda i: linear(i) + i["b"]),
    ("R[i, f] = leaky_relu(X)[i, f]", lambda i: np.where(i["X"] > 0, i["X"], 0.01 * i["X"])),
    ("R[i, f] = gelu(X)[i, f]", lambda i: i["X"] * special.ndtr(i["X"])),
    ("R[i, f] = scaled_layer_norm(X, gain, shift)[i, f]", scaled_layer_norm),
    ("R[i, f] = dropout(X, 0.25, 7, t)[i, f]", dropout),
    ("R[i, o] = gcn(A, X, W)[i, o]", lambda i: i["A"] @ linear(i)),
    ("R[i, j] = symmetrically_normalised(A)[i, j]", normalised),
    ("R[i, o] = sage(A, X, W, W2)[i, o]", sage),
    ("R[i, o] = gat(A, X, W, own, neighbour)[i, o]", gat),
    ("R[i, o] = attention(Q, K, V)[i, o]", lambda i: attention(i["Q"], i["K"], i["V"])),
    (
        "R[i, o] = causal_attention(Q, K, V)[i, o]",
        lambda i: attention(i["Q"], i["K"], i["V"], np.tril(np.ones((6, 6), bool))),
    ),
    ("R[h, i, o] = multi_head_attention(Q3, K3, V3)[h, i, o]", lambda i: attention(i["Q3"], i["K3"], i["V3"])),
    ("R[] = cross_entropy(Z, Y)[]", cross_entropy),
    ("R[] = binary_cross_entropy(scores, truth)[]", binary_cross_entropy),
    ("R[] = squared_error(scores, truth)[]", lambda i: ((i["scores"] - i["truth"]) ** 2).mean()),
    ("R[] = l2(W)[]", lambda i: (i["W"] ** 2).sum() / 2),
    ("R[i, f] = batch(X, 4, 7, t)[i, f]", batch),
    ("R[i, j] = sample_neighbours(A, 2, 7, t)[i, j]", sampled_neighbours),
]


def adam(i: dict[str, Array]) -> Array:
    mean, square = i["M"] / (1 - 0.9**4), i["S"] / (1 - 0.999**4)
    return np.asarray(i["W"] - 0.01 * mean / (np.sqrt(square) + 1e-8))


OPTIMISERS: list[tuple[str, Callable[[dict[str, Array]], Array]]] = [
    ("R = sgd(W, G, 0.1)", lambda i: i["W"] - 0.1 * i["G"]),
    ("R = velocity(M, G)", lambda i: 0.9 * i["M"] + i["G"]),
    ("R = adam_mean(M, G)", lambda i: 0.9 * i["M"] + 0.1 * i["G"]),
    ("R = adam_square(S, G)", lambda i: 0.999 * i["S"] + 0.001 * i["G"] ** 2),
    ("R = adam(W, M, S, t, 0.01)", adam),
    ("R = adam(b, own, own * own, t, 0.01)", lambda i: adam({"W": i["b"], "M": i["own"], "S": i["own"] ** 2})),
    ("R = adamw(W, M, S, t, 0.01, 0.2)", lambda i: adam(i) - 0.01 * 0.2 * i["W"]),
    ("R = step_decay(0.5, t, 2)", lambda i: np.asarray(0.05)),
    ("R = cosine_decay(0.5, t, 12)", lambda i: np.asarray(0.25 * (1 + np.cos(np.pi / 4)))),
    ("R = cosine_decay(0.5, t, 2)", lambda i: np.asarray(0.0)),
    ("R = warmup(0.5, t, 8)", lambda i: np.asarray(0.25)),
    ("R = sgd(W, G, warmup(0.5, t, 8))", lambda i: i["W"] - 0.25 * i["G"]),
]


def f1(predicted: Array, true: Array) -> float:
    return float(2 * (predicted * true).sum() / max(predicted.sum() + true.sum(), 1))


def macro_f1(i: dict[str, Array]) -> Array:
    predicted = np.eye(OUTPUTS)[i["Z"].argmax(1)] * i["Y"].sum(1)[:, None]
    return np.asarray(np.mean([f1(predicted[:, k], i["Y"][:, k]) for k in range(OUTPUTS)]))


def auc(i: dict[str, Array]) -> Array:
    own, others = i["scores"][i["truth"] == 1][:, None], i["scores"][i["truth"] == 0]
    return np.asarray(((own > others) + 0.5 * (own == others)).mean())


METRICS: list[tuple[str, Callable[[dict[str, Array]], Array]]] = [
    ("R[i] = predicted(Z)[i]", lambda i: i["Z"].argmax(1)),
    ("R[] = accuracy(Z, Y)[]", lambda i: (i["Z"].argmax(1) == CLASSES)[:7].mean()),
    ("R[] = macro_f1(Z, Y)[]", macro_f1),
    ("R[] = f1(guesses, truth)[]", lambda i: np.asarray(f1(i["guesses"], i["truth"]))),
    ("R[] = auc(scores, truth)[]", auc),
]
FIRST_WEIGHTS = {  # the greatest number, or the standard deviation, of 60 inputs and 40 outputs
    "glorot_uniform": np.sqrt(6 / 100),
    "glorot_normal": np.sqrt(2 / 100),
    "he_uniform": np.sqrt(6 / 60),
    "he_normal": np.sqrt(2 / 60),
}
FILES = {"nn": LAYERS, "optim": OPTIMISERS, "metrics": METRICS}
CALLS = [(file, text, oracle) for file, calls in FILES.items() for text, oracle in calls]


@pytest.fixture(scope="module")
def loaded(shared_db: se.Database) -> se.Database:
    for name, array in INPUTS.items():
        shared_db.tensor(name, array)
    return shared_db


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize(("file", "text", "oracle"), CALLS, ids=[text for _, text, _ in CALLS])
def test_functions(loaded: se.Database, file: str, text: str, oracle: Callable[[dict[str, Array]], Array]) -> None:
    result = loaded.run(f'include "{file}"\n{text}')["R"].to_numpy()
    np.testing.assert_allclose(result, oracle(INPUTS), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("file", LIBRARIES)
def test_every_function_is_tested(file: str) -> None:
    written = (Path(program_files.__file__).parent / "library" / f"{file}.ein").read_text()
    texts = [
        *(text for own, text, _ in CALLS if own == file),
        *(line.partition("=")[2] for line in written.split("\n")),
    ]
    for function in re.findall(r"^def (\w+)", written, re.MULTILINE):
        assert function in FIRST_WEIGHTS or any(re.search(rf"\b{function}\(", text) for text in texts), function


@pytest.mark.parametrize(("name", "bound"), FIRST_WEIGHTS.items())
def test_first_weights(shared_db: se.Database, name: str, bound: float) -> None:
    text = f'include "nn"\ntensor R[f: 60, o: 40]\nR[f, o] = {name}(9)[f, o]'
    result = shared_db.run(text)["R"].to_numpy()
    keys = np.arange(60)[:, None], np.arange(40)
    draws = normal_quantiles(uniform(9, *keys) + 2.0**-53) if name.endswith("normal") else 2 * uniform(9, *keys) - 1
    np.testing.assert_allclose(result, bound * draws, rtol=1e-12)


def test_batches_part_the_rows(loaded: se.Database) -> None:
    text = 'include "nn"\nparam number = 0\nR[i, f] = batch(X, 3, 5, number)[i, f]'
    batches = [loaded.run(text, parameters={"number": number})["R"].to_numpy() for number in range(6)]
    np.testing.assert_allclose(sum(batches[:3]), INPUTS["X"])
    np.testing.assert_allclose(sum(batches[3:]), INPUTS["X"])
    assert any(not np.array_equal(first, second) for first, second in zip(batches[:3], batches[3:], strict=True))


def test_programs_in_files_include_the_library(tmp_path: Path) -> None:
    (tmp_path / "model.ein").write_text('include "nn"\ninclude "nn"\nR[i, o] = linear(X, W)[i, o]')
    program = se.read_program(tmp_path / "model.ein")
    np.testing.assert_allclose(evaluate_program(program, INPUTS)["R"], linear(INPUTS))


def test_an_own_file_of_that_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nn").write_text("")
    (tmp_path / "model.ein").write_text('include "nn"')
    with pytest.raises(se.ParseError, match=r"a file that this package brings; rename it, as in nn\.ein"):
        se.read_program(tmp_path / "model.ein")
