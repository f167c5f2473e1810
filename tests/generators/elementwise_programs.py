"""Random programs of elementwise statements on two labels, and their inputs."""

import numpy as np
from numpy.typing import NDArray

PAIRS = (
    "{u} + {v}",
    "{u} * {v}",
    "{u} - 2 * {v}",
    "max({u}, {v})",
    "where({u} > 0, {v}, 1)",
    "where({v} == 0, {u}, {u} * {v})",
    "exp(-abs({u})) * {v} + {u}",
)
SINGLES = ("relu({u})", "abs({u}) + 1", "{u} / 2")
LABELS = {"A": "i, j", "B": "i, j", "D": "i, j", "F": "i, j", "c": "i", "w": "j", "s": "", "z": ""}


def elementwise_inputs() -> dict[str, NDArray[np.float64]]:
    """Sparse tensors (A, B, F with the fill 2.5, c) and dense ones (D, w, s, z)."""
    rng = np.random.default_rng(5)

    def sparse(*shape: int, fill: float = 0) -> NDArray[np.float64]:
        array = np.where(rng.random(shape) < 0.5, rng.uniform(-2, 2, shape), fill)
        array[0] = fill
        return array

    dense = {"D": rng.uniform(-2, 2, (4, 5)), "w": rng.uniform(-2, 2, 5), "s": np.array(0.75), "z": np.array(0.0)}
    return {"A": sparse(4, 5), "B": sparse(4, 5), "F": sparse(4, 5, fill=2.5), "c": sparse(4), **dense}


def elementwise_program(rng: np.random.Generator) -> str:
    """Statements on the labels i and j, each of which reads inputs and results of earlier ones."""
    lines: list[str] = []
    for number in range(int(rng.integers(3, 7))):
        results = [f"T{earlier}[i, j]" for earlier in range(number)]
        read = [f"{name}[{labels}]" for name, labels in LABELS.items()]
        last = results[-1] if results else "A[i, j]"
        other = str(rng.choice(results if results and rng.random() < 0.4 else read))
        pair = [last, other] if rng.random() < 0.5 else [other, last]
        template = str(rng.choice(PAIRS)) if rng.random() < 0.8 else str(rng.choice(SINGLES)).replace("{u}", last)
        lines.append(f"T{number}[i, j] = {template.format(u=pair[0], v=pair[1])}")
    return "\n".join(lines)
