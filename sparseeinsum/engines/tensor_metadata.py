"""Engines: what entries alone do not tell of a tensor, kept beside them in the metadata of Arrow tables and files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparseeinsum.engines.arguments import Description
from sparseeinsum.engines.catalogue import fill_from_text, fill_text
from sparseeinsum.errors import DataError
from sparseeinsum.language.tensors import Tensor

METADATA_KEY = "sparseeinsum"


def metadata_of(tensor: Tensor) -> dict[str, str]:
    """A tensor's name, axes, bounds, dtype and fill, as metadata of a schema have them."""
    axes = {axis.name: axis.bound for axis in tensor.axes}
    told = {"name": tensor.name, "axes": axes, "dtype": tensor.dtype, "fill": fill_text(tensor.fill)}
    return {METADATA_KEY: json.dumps(told)}


def completed(description: Description, metadata: Mapping[bytes, bytes] | None, index: Sequence[str]) -> Description:
    """What a user says of a tensor, with shape and fill from metadata where they say nothing of those.

    Args:
        description: What they say.
        metadata: Of the entries; what a result of other axes left there says nothing of these.
        index: Columns of indices.

    Raises:
        DataError: The metadata are not as a result leaves them.
    """
    text = (metadata or {}).get(METADATA_KEY.encode())
    if text is None:
        return description
    try:
        told = json.loads(text)
        bounds, fill = dict(told["axes"]), fill_from_text(told["fill"], told["dtype"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"tensor {description.name}: the metadata {METADATA_KEY} of its data say nothing that can be read "
            f"({error!r}); remove them"
        ) from None
    names = [name.lower() for name in index]
    if sorted(names) != sorted(bounds):
        return description
    return replace(
        description,
        shape=tuple(bounds[name] for name in names) if description.shape is None else description.shape,
        fill=fill if description.fill is None else description.fill,
    )
