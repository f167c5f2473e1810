"""Models: names of tensors for the names that other packages give to weights, such as encoder.layers.0.weight."""

import re
from collections.abc import Iterable

from sparseeinsum.errors import DataError


def tensor_name(name: str) -> str:
    """The name of a tensor for any text: `_` replaces each character that is no letter, no digit and no `_`.

    A name that would begin with a digit, or be empty, begins with `_`.

    >>> tensor_name("encoder.layers.0.weight"), tensor_name("0.bias")
    ('encoder_layers_0_weight', '_0_bias')
    """
    spelled = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return spelled if spelled[:1] and not spelled[0].isdigit() else f"_{spelled}"


def tensor_names(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """The names of tensors, by the given names; `prefix` begins each of them.

    Raises:
        DataError: Two names would become one, as case does not tell tensors apart.
    """
    tensors: dict[str, str] = {}
    first: dict[str, str] = {}
    for name in names:
        tensors[name] = tensor_name(prefix + name)
        other = first.setdefault(tensors[name].lower(), name)
        if other != name:
            raise DataError(
                f"{other} and {name} would both be the tensor {tensors[name]}; say which names they get, as in "
                f"names={{{name!r}: 'other_name', ...}}"
            )
    return tensors
