"""Models: which weights become which tensors of a database, and which tensors are saved under which names."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sparseeinsum.errors import CatalogueError, DataError
from sparseeinsum.language.syntax import RULE_OF_NAMES, is_name
from sparseeinsum.models.tensor_names import tensor_names
from sparseeinsum.models.weight_files import Weights, as_storable, read_weights
from sparseeinsum.presentation.spelling import did_you_mean


def named_weights(
    source: str | Path | Weights, prefix: str, names: Mapping[str, str] | None
) -> dict[str, tuple[str, object]]:
    """The tensor and the values of each weight, by its name in the source.

    Args:
        source: A file of weights, or the weights by name.
        prefix: What the names of tensors begin with if `names` is None.
        names: Tensors by names of weights in the source, to read no others; None for all.
    """
    if isinstance(source, str | Path):
        title, weights = str(source), read_weights(Path(source))
    else:
        title, weights = "the dict", {name: as_storable(name, data) for name, data in source.items()}
    tensors = tensor_names(weights, prefix) if names is None else _chosen(title, weights, names)
    return {name: (tensor, weights[name]) for name, tensor in tensors.items()}


def tensors_to_save(names: Mapping[str, str] | Iterable[str] | None, stored: Sequence[str]) -> dict[str, str]:
    """The tensors to save, by their names in the file; see `Database.save_weights`. `stored` are those that exist."""
    if isinstance(names, str):
        raise DataError(f"names are {names!r}, one text; give a list, as in [{names!r}]")
    tensors = (
        dict(names) if isinstance(names, Mapping) else {name: name for name in (stored if names is None else names)}
    )
    for tensor in tensors.values():
        if tensor not in stored:
            known = did_you_mean(tensor, stored, "the database has", none="the database has none")
            raise CatalogueError(f"there is no tensor {tensor} to save; {known}")
    return tensors


def _chosen(title: str, weights: Weights, names: Mapping[str, str]) -> dict[str, str]:
    """The names of tensors that a caller gives to some weights, after a check."""
    for name, tensor in names.items():
        if name not in weights:
            raise DataError(f"{title} has no {name}; {did_you_mean(name, weights, 'it has')}")
        if not is_name(tensor):
            raise DataError(f"{tensor!r} cannot name a tensor; {RULE_OF_NAMES}")
    if len({tensor.lower() for tensor in names.values()}) < len(names):
        raise DataError("two weights get the same tensor, as case does not tell names apart; give each its own")
    return dict(names)
