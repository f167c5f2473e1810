"""Plans: a plan as JSON text, and back.

A file holds the program, the EinSums that it was rewritten into, the tiles of their labels, and what was known of the
inputs. Rewriting relied on that knowledge, so it must hold for other data as well.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparseeinsum.decompose.decomposed_graph import Step
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum, Program, write_einsum
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.tensors import DEMOTED, Decomposition, Tensor
from sparseeinsum.operators.ranges import EMPTY_RANGE, Range
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.semantics.exactness import ValueFacts

_FORMAT = "sparseeinsum plan"
_VERSION = 1

_Object = dict[str, Any]  # as JSON has it: what it holds is checked where it is read


@dataclass(frozen=True, slots=True)
class SavedInput:
    """What a plan knew of an input.

    Attributes:
        shape: The bounds of its axes.
        dtype: Its dtype.
        fill: Its fill as program text.
        values: The range of its values.
        dictionaries: The name and the key type of the dictionary of an axis, by the name of the axis.
    """

    shape: tuple[int, ...]
    dtype: str
    fill: str
    values: ValueFacts
    dictionaries: Mapping[str, tuple[str, str]]

    def difference(self, tensor: Tensor) -> str | None:
        """How `tensor` differs from the input, as a sentence; None if the plan can read it instead."""
        attributes = (
            ("shape", tensor.shape, self.shape),
            ("dtype", tensor.dtype, self.dtype),
            ("fill", write_number(tensor.fill), self.fill),
            ("dictionaries", _dictionaries(tensor), self.dictionaries),
        )
        for attribute, now, then in attributes:
            if now != then:
                return f"the plan was made for {attribute} {then} of tensor {tensor.name}, which has {attribute} {now}"
        return None


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan without its data.

    Attributes:
        program: The program.
        options: What the user asked of the plan; `outputs` lists all results that it returns.
        inputs: What the plan knew of its inputs, by name.
        einsums: The program as it was rewritten.
        tiles: For every result, the tiles of the labels of its EinSum.
        layouts: For every output, the tiles of its axes.
    """

    program: Program
    options: PlanOptions
    inputs: Mapping[str, SavedInput]
    einsums: tuple[EinSum, ...]
    tiles: Mapping[str, Mapping[str, int]]
    layouts: Mapping[str, Mapping[str, int]]

    def layout_of(self, tensor: Tensor) -> Decomposition:
        """The decomposition in which the output `tensor` is delivered.

        Raises:
            PlanError: The file has no layout for it, or one for other axes.
        """
        axes = tuple(axis.name for axis in tensor.axes)
        tiles = self.layouts.get(tensor.name, {})
        if tuple(tiles) != axes:
            raise PlanError(f"the plan has no layout for {tensor.name} with the axes {', '.join(axes) or '(none)'}")
        return Decomposition(tuple(tiles.values()))


def write_plan(plan: ProgramPlan) -> str:
    """A plan as JSON text: the program, the choices and the expected costs, but no data."""
    decomposed, options = plan.decomposed, plan.options
    graph = decomposed.graph
    layouts = {
        name: dict(zip((axis.name for axis in graph.tensors[name].axes), layout.tiles, strict=True))
        for name, layout in decomposed.layouts.items()
    }
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "program": str(plan.program).split("\n"),
        "options": {
            "optimizer": options.optimizer,
            "memory_limit": options.memory_limit,
            "nonfinite": options.nonfinite,
            "estimator": options.estimator,
            "tiles": list(options.tiles),
            "outputs": list(graph.outputs),
        },
        "inputs": {name: _write_input(graph.tensors[name], plan.inputs[name].values) for name in plan.program.inputs},
        "einsums": [_write_step(step) for step in decomposed.steps],
        "layouts": layouts,
        "expected_seconds": decomposed.seconds,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _write_input(tensor: Tensor, values: ValueFacts) -> _Object:
    entries = values.entries
    facts = {
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
        "has_entries": values.has_entries,
        "entries": None if entries == EMPTY_RANGE else facts,
    }


def _write_step(step: Step) -> _Object:
    return {
        "einsum": write_einsum(step.einsum),
        "tiles": dict(zip(step.einsum.labels, step.choice, strict=True)),
        "notation": step.notation,
        "expected_seconds": step.seconds,
    }


def read_plan(source: str | Path) -> SavedPlan:
    """Read a saved plan.

    Args:
        source: The path of a file, or JSON text.

    Raises:
        PlanError: The file does not exist, or is not a plan that this version can read.
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
    einsums = lower_text("\n".join(str(step["einsum"]) for step in content["einsums"])).einsums
    return SavedPlan(
        lower_text("\n".join(content["program"])),
        PlanOptions(
            optimizer=str(options["optimizer"]),
            memory_limit=None if options["memory_limit"] is None else int(options["memory_limit"]),
            outputs=tuple(str(name) for name in options["outputs"]),
            nonfinite=str(options["nonfinite"]),
            tiles=tuple(map(int, options["tiles"])),
            estimator=str(options["estimator"]),
        ),
        {str(name): _read_input(saved) for name, saved in content["inputs"].items()},
        einsums,
        dict(_read_tiles(einsums, content["einsums"])),
        {str(name): _whole_numbers(layout) for name, layout in content["layouts"].items()},
    )


def _read_input(content: _Object) -> SavedInput:
    entries = content["entries"]
    value_range = EMPTY_RANGE
    if entries is not None:
        low, high = entries["low"], entries["high"]
        value_range = Range(
            -math.inf if low is None else _number(low),
            math.inf if high is None else _number(high),
            bool(entries["may_be_nan"]),
        )
    values = ValueFacts(value_range, bool(content["has_fill"]), bool(content.get("has_entries", False)))
    dictionaries = {
        str(axis): (str(name), str(key_type)) for axis, (name, key_type) in content.get("dictionaries", {}).items()
    }
    shape = tuple(map(int, content["shape"]))
    return SavedInput(shape, str(content["dtype"]), str(content["fill"]), values, dictionaries)


def _number(value: object) -> float:
    """Check that a JSON value is a number; whole numbers stay of type int."""
    if not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no number")
    return value


def _dictionaries(tensor: Tensor) -> dict[str, tuple[str, str]]:
    axes = ((axis.name, axis.dictionary) for axis in tensor.axes)
    return {axis: (keys.name, keys.key_type) for axis, keys in axes if keys is not None}


def _read_tiles(einsums: tuple[EinSum, ...], written: list[_Object]) -> Iterator[tuple[str, dict[str, int]]]:
    if len(einsums) != len(written):
        raise ValueError(f"{len(written)} EinSums are written as {len(einsums)}; write inner aggregates apart")
    for einsum, step in zip(einsums, written, strict=True):
        tiles = _whole_numbers(step["tiles"])
        if set(tiles) != set(einsum.labels):
            raise ValueError(f"{step['einsum']} has the labels {', '.join(einsum.labels)}, but tiles of {list(tiles)}")
        yield einsum.output.tensor, tiles


def _whole_numbers(tiles: _Object) -> dict[str, int]:
    for label, tile in tiles.items():
        if not isinstance(tile, int) or tile < DEMOTED:
            raise ValueError(f"{tile!r} is no tile of {label}; it is 0 inside arrays, 1 as a key column")
    return dict(tiles)
