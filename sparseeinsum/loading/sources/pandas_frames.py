"""Loading: converts frames and series of pandas to Arrow tables; levels of a named index become columns."""

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sparseeinsum.errors import DataError

if TYPE_CHECKING:
    import pandas


def is_pandas(data: object) -> bool:
    """Return whether data are a frame or a series of pandas."""
    package: Any = sys.modules.get("pandas")
    return package is not None and isinstance(data, package.DataFrame | package.Series)


def pandas_table(name: str, data: "pandas.DataFrame | pandas.Series[Any]") -> pa.Table:
    """Return the columns of a frame, preceded by the levels of its index if these have names.

    The levels of a series' index always precede its values; they are called dim_0, dim_1, ... if they have no names.
    NaN in a column of a float dtype of numpy is a number, as in numpy; in all other columns it is NULL.

    Raises:
        DataError: Arrow lacks the type of a column, or a level of the index has the name of a column.
    """
    try:
        frame = _flat(data)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        for position, dtype in enumerate(frame.dtypes):
            if isinstance(dtype, np.dtype) and dtype.kind == "f":  # from_pandas makes NULL of NaN
                numbers = pa.array(frame.iloc[:, position].to_numpy())
                table = table.set_column(position, table.field(position).name, numbers)
        return table
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(
            f"tensor {name} cannot be read as an Arrow table: {error}; what Arrow lacks, such as complex numbers, can "
            "be given as (coordinates, values)"
        ) from None


def _flat(data: Any) -> "pandas.DataFrame":  # noqa: ANN401  # stubs take methods of a series for its values
    if data.ndim == 1:
        levels = [f"dim_{number}" if level is None else level for number, level in enumerate(data.index.names)]
        data = data.to_frame("value" if data.name is None else data.name).rename_axis(levels)
    frame: pandas.DataFrame = data if all(level is None for level in data.index.names) else data.reset_index()
    return frame
