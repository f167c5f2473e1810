"""Storage: what entries alone do not tell of a tensor, kept beside them in the metadata of Arrow tables and files."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from sparseeinsum.errors import DataError
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.storage.fills import fill_from_text, fill_text
from sparseeinsum.storage.tensor_description import TensorDescription

METADATA_KEY = "sparseeinsum"


def metadata_of(tensor: Tensor) -> dict[str, str]:
    """A tensor's name, axes, bounds, dtype and fill, as metadata of a schema have them; natural keys have no bounds."""
    axes = {axis.name: axis.bound if axis.dictionary is None else None for axis in tensor.axes}
    told = {"name": tensor.name, "axes": axes, "dtype": tensor.dtype, "fill": fill_text(tensor.fill)}
    return {METADATA_KEY: json.dumps(told)}


def completed_from_metadata(
    description: TensorDescription, data: object, index: Sequence[str] | None
) -> TensorDescription:
    """What a user says of a tensor, with shape and fill from metadata of its data where they say nothing of those.

    Args:
        description: What they say.
        data: Only those of Arrow, and a Parquet file of this machine, have metadata; what a result of other axes left
            there says nothing of these.
        index: Columns of indices; None for all but the last.

    Raises:
        DataError: The metadata are not as a result leaves them.
    """
    schema = _schema_of(data)
    text = None if schema is None else (schema.metadata or {}).get(METADATA_KEY.encode())
    if schema is None or text is None:
        return description
    try:
        told = json.loads(text)
        bounds, fill = dict(told["axes"]), fill_from_text(told["fill"], told["dtype"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"tensor {description.name}: the metadata {METADATA_KEY} of its data say nothing that can be read "
            f"({error!r}); remove them"
        ) from None
    names = [name.lower() for name in (schema.names[:-1] if index is None else index)]
    if sorted(names) != sorted(bounds):
        return description
    says_shape = description.shape is None and None not in bounds.values()
    return replace(
        description,
        shape=tuple(bounds[name] for name in names) if says_shape else description.shape,
        fill=fill if description.fill is None else description.fill,
    )


def _schema_of(data: object) -> pa.Schema | None:
    if isinstance(data, str | Path):
        return _schema_of_file(Path(data))
    is_of_arrow = type(data).__module__.split(".")[0] == "pyarrow"  # schemas of others may be dear, as of lazy frames
    schema = getattr(data, "schema", None) if is_of_arrow else None
    return schema if isinstance(schema, pa.Schema) else None


def _schema_of_file(path: Path) -> pa.Schema | None:
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return None
    try:
        return parquet.read_schema(path)
    except pa.ArrowException:  # it is none, and who reads its rows says so
        return None
