"""Plans as values: a plan in, JSON text out that another database plans by; and back.

A file holds the program, the EinSums that it was rewritten into, the tiles of their labels, and what was known of the
inputs: rewriting relied on it, so that it must hold for other data, too.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparseeinsum.decompose.plan import DecomposedGraph, Step
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum, Program, write_einsum
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.tensors import DEMOTED, Decomposition, Tensor
from sparseeinsum.operators.ranges import NOTHING, Range
from sparseeinsum.semantics.exactness import Values

_FORMAT = "sparseeinsum plan"
_VERSION = 1

_Object = dict[str, Any]  # as JSON has it: what it holds is checked where it is read


@dataclass(frozen=True, slots=True)
class SavedInput:
    """What a plan knew of an input.

    Attributes:
        shape: Bounds of its axes.
        dtype: Of its values.
        fill: As program text.
        values: Where its values lay.
        dictionaries: Of its axes, by the name of the axis: name and type of keys.
    """

    shape: tuple[int, ...]
    dtype: str
    fill: str
    values: Values
    dictionaries: Mapping[str, tuple[str, str]]

    def difference(self, tensor: Tensor) -> str | None:
        """In what a tensor differs from the input; None where it can stand in for it."""
        found = (
            ("shape", tensor.shape, self.shape),
            ("dtype", tensor.dtype, self.dtype),
            ("fill", write_number(tensor.fill), self.fill),
            ("dictionaries", _dictionaries(tensor), self.dictionaries),
        )
        for attribute, now, then in found:
            if now != then:
                return f"the plan was made for {attribute} {then} of tensor {tensor.name}, which has {attribute} {now}"
        return None


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan without its data.

    Attributes:
        program: What it computes.
        optimizer: That found it.
        memory_limit: Bytes that a run was allowed, or None for the limit of the database.
        nonfinite: `error` or `allow`.
        estimator: How sizes of results were estimated, and are again: one of ESTIMATORS.
        allowed_tiles: Tiles of several indices that any label might have had.
        outputs: Results that it returns.
        inputs: By name.
        einsums: The program as it was rewritten.
        tiles: For every result, the tiles of the labels of its EinSum.
        layouts: For every output, the tiles of its axes.
    """

    program: Program
    optimizer: str
    memory_limit: int | None
    nonfinite: str
    estimator: str
    allowed_tiles: tuple[int, ...]
    outputs: tuple[str, ...]
    inputs: Mapping[str, SavedInput]
    einsums: tuple[EinSum, ...]
    tiles: Mapping[str, Mapping[str, int]]
    layouts: Mapping[str, Mapping[str, int]]

    def layout_of(self, tensor: Tensor) -> Decomposition:
        """The decomposition that an output is delivered in.

        Raises:
            PlanError: The file has none for it, or one of other axes.
        """
        axes = tuple(axis.name for axis in tensor.axes)
        tiles = self.layouts.get(tensor.name, {})
        if tuple(tiles) != axes:
            raise PlanError(f"the plan has no layout for {tensor.name} with the axes {', '.join(axes) or '(none)'}")
        return Decomposition(tuple(tiles.values()))


def write_plan(
    program: Program,
    decomposed: DecomposedGraph,
    values: Mapping[str, Values],
    optimizer: str,
    memory_limit: int | None,
    nonfinite: str,
    estimator: str,
    allowed_tiles: tuple[int, ...],
) -> str:
    """A plan as JSON.

    Args:
        program: What it computes.
        decomposed: The EinSums, their choices and costs.
        values: What was known of the inputs.
        optimizer: That found it.
        memory_limit: Bytes that a run is allowed, or None for the limit of the database.
        nonfinite: `error` or `allow`.
        estimator: How sizes of results were estimated.
        allowed_tiles: Tiles of several indices that any label might have had.
    """
    graph = decomposed.graph
    layouts = {
        name: dict(zip((axis.name for axis in graph.tensors[name].axes), layout.tiles, strict=True))
        for name, layout in decomposed.layouts.items()
    }
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "program": str(program).split("\n"),
        "options": {
            "optimizer": optimizer,
            "memory_limit": memory_limit,
            "nonfinite": nonfinite,
            "estimator": estimator,
            "tiles": list(allowed_tiles),
            "outputs": list(graph.outputs),
        },
        "inputs": {name: _write_input(graph.tensors[name], values[name]) for name in program.inputs},
        "einsums": [_write_step(step) for step in decomposed.steps],
        "layouts": layouts,
        "expected_seconds": decomposed.seconds,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _write_input(tensor: Tensor, values: Values) -> _Object:
    entries = values.entries
    known = {
        "low": entries.low if math.isfinite(entries.low) else None,
        "high": entries.high if math.isfinite(entries.high) else None,
        "may_be_nan": entries.may_be_nan,
    }
    return {
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "fill": write_number(tensor.fill),
        "dictionaries": _dictionaries(tensor),
        "has_fill": values.has_fill,
        "entries": None if entries == NOTHING else known,
    }


def _write_step(step: Step) -> _Object:
    return {
        "einsum": write_einsum(step.einsum),
        "tiles": dict(zip(step.einsum.labels, step.choice, strict=True)),
        "notation": step.notation,
        "expected_seconds": step.seconds,
    }


def read_plan(source: str | Path) -> SavedPlan:
    """Read a plan that was saved.

    Args:
        source: Path of a file, or the JSON text itself.

    Raises:
        PlanError: There is no such file, or it is no plan that this version reads.
    """
    content = _content(source)
    try:
        return _saved_plan(content)
    except KeyError as error:
        raise PlanError(f"the plan lacks {error.args[0]!r}; save it again") from None
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise PlanError(f"the plan cannot be read: {error}") from error


def _content(source: str | Path) -> _Object:
    is_text = isinstance(source, str) and source.lstrip().startswith("{")
    try:
        content = json.loads(str(source) if is_text else Path(source).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlanError(f"there is no plan file {source}") from None
    except ValueError as error:
        raise PlanError(f"{'the text' if is_text else source} is no plan: it is no JSON ({error})") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise PlanError(f"{'the text' if is_text else source} is no plan; plan.save writes one")
    if content.get("version") != _VERSION:
        raise PlanError(
            f"the plan has version {content.get('version')} of the format, but this package reads version {_VERSION}; "
            "save it again with this version"
        )
    return content


def _saved_plan(content: _Object) -> SavedPlan:
    options = content["options"]
    einsums = lower_text("\n".join(str(each["einsum"]) for each in content["einsums"])).einsums
    return SavedPlan(
        lower_text("\n".join(content["program"])),
        str(options["optimizer"]),
        None if options["memory_limit"] is None else int(options["memory_limit"]),
        str(options["nonfinite"]),
        str(options["estimator"]),
        tuple(map(int, options["tiles"])),
        tuple(str(name) for name in options["outputs"]),
        {str(name): _read_input(each) for name, each in content["inputs"].items()},
        einsums,
        dict(_read_tiles(einsums, content["einsums"])),
        {str(name): _whole_numbers(layout) for name, layout in content["layouts"].items()},
    )


def _read_input(content: _Object) -> SavedInput:
    entries = content["entries"]
    found = NOTHING
    if entries is not None:
        low, high = entries["low"], entries["high"]
        found = Range(
            -math.inf if low is None else _number(low),
            math.inf if high is None else _number(high),
            bool(entries["may_be_nan"]),
        )
    values = Values(found, bool(content["has_fill"]))
    dictionaries = {
        str(axis): (str(name), str(key_type)) for axis, (name, key_type) in content.get("dictionaries", {}).items()
    }
    shape = tuple(map(int, content["shape"]))
    return SavedInput(shape, str(content["dtype"]), str(content["fill"]), values, dictionaries)


def _number(value: object) -> float:
    """A number as it was written, whole ones whole."""
    if not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no number")
    return value


def _dictionaries(tensor: Tensor) -> dict[str, tuple[str, str]]:
    axes = ((axis.name, axis.dictionary) for axis in tensor.axes)
    return {axis: (found.name, found.key_type) for axis, found in axes if found is not None}


def _read_tiles(einsums: tuple[EinSum, ...], written: list[_Object]) -> Iterator[tuple[str, dict[str, int]]]:
    if len(einsums) != len(written):
        raise ValueError(f"{len(written)} EinSums are written as {len(einsums)}; write inner aggregates apart")
    for einsum, each in zip(einsums, written, strict=True):
        tiles = _whole_numbers(each["tiles"])
        if set(tiles) != set(einsum.labels):
            raise ValueError(f"{each['einsum']} has the labels {', '.join(einsum.labels)}, but tiles of {list(tiles)}")
        yield einsum.output.tensor, tiles


def _whole_numbers(tiles: _Object) -> dict[str, int]:
    for label, tile in tiles.items():
        if not isinstance(tile, int) or tile < DEMOTED:
            raise ValueError(f"{tile!r} is no tile of {label}; it is 0 inside arrays, 1 as a key column")
    return dict(tiles)
