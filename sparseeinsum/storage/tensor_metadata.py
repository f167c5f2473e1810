"""Storage: metadata of Arrow tables and Parquet files with the shape, dtype and fill of the tensor in them."""

import json
from collections.abc import Mapping, Sequence
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
    """Return the name, axes, bounds, dtype and fill of a tensor as metadata; axes have bounds or dictionaries."""
    axes = {axis.name: axis.bound if axis.dictionary is None else None for axis in tensor.axes}
    metadata = {"name": tensor.name, "axes": axes, "dtype": tensor.dtype, "fill": fill_text(tensor.fill)}
    keys = {axis.name: axis.dictionary.name for axis in tensor.axes if axis.dictionary is not None}
    if keys:
        metadata["keys"] = keys
    return {METADATA_KEY: json.dumps(metadata)}


def completed_from_metadata(
    description: TensorDescription, data: object, index: Sequence[str] | None
) -> TensorDescription:
    """Complete a description with the shape, the fill and the dictionaries in the metadata of the data.

    Args:
        description: What the user says of the tensor, which takes precedence.
        data: The data. Only data of Arrow, results, and Parquet files on this machine, have metadata. Metadata of a
            result with other axes are ignored.
        index: The columns of indices; None for all columns but the last.

    Raises:
        DataError: The metadata are damaged.
    """
    schema = _schema_of(data)
    text = None if schema is None else (schema.metadata or {}).get(METADATA_KEY.encode())
    if schema is None or text is None:
        return description
    try:
        metadata = json.loads(text)
        bounds, fill = dict(metadata["axes"]), fill_from_text(metadata["fill"], metadata["dtype"])
        keys = dict(metadata.get("keys", {}))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"tensor {description.name}: the metadata {METADATA_KEY} of its data say nothing that can be read "
            f"({error!r}); remove them"
        ) from None
    names = [name.lower() for name in (schema.names[:-1] if index is None else index)]
    if sorted(names) != sorted(bounds):
        return description
    takes_shape = description.shape is None and None not in bounds.values()
    return replace(
        description,
        shape=tuple(bounds[name] for name in names) if takes_shape else description.shape,
        fill=fill if description.fill is None else description.fill,
        keys={**_keys_of_axes(keys, names, description.axes), **description.keys},
    )


def _keys_of_axes(keys: Mapping[str, str], columns: Sequence[str], axes: Sequence[str] | None) -> dict[str, str]:
    """Return the dictionaries of columns by the names of axes, which the user may have changed."""
    names = columns if axes is None or len(axes) != len(columns) else axes
    return {axis: keys[column] for axis, column in zip(names, columns, strict=True) if column in keys}


def _schema_of(data: object) -> pa.Schema | None:
    if isinstance(data, str | Path):
        return _schema_of_file(Path(data))
    if hasattr(data, "__arrow_c_schema__"):
        return pa.schema(data)
    # Other objects, such as lazy frames, may take long to compute their schema.
    is_arrow = type(data).__module__.split(".")[0] == "pyarrow"
    schema = getattr(data, "schema", None) if is_arrow else None
    return schema if isinstance(schema, pa.Schema) else None


def _schema_of_file(path: Path) -> pa.Schema | None:
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return None
    try:
        return parquet.read_schema(path)
    except pa.ArrowException:  # no Parquet file; the reader of its rows reports this
        return None
