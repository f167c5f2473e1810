"""Loading: reads dense and sparse tensors of torch, on any device."""

import sys
from typing import Any

import numpy as np

from sparseeinsum.errors import DataError
from sparseeinsum.loading.sources.input_data import DenseArray, EntryArrays


def is_torch(data: object) -> bool:
    """Return whether data are a tensor of torch."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(data, torch.Tensor)


def read_torch(name: str, data: Any) -> DenseArray | EntryArrays:  # noqa: ANN401  # torch is none of our dependencies
    """Read the present values of a tensor; gradients do not flow through a database, so `requires_grad` is ignored.

    Raises:
        DataError: The tensor is quantized, nested, or has a layout that cannot be converted to entries.
    """
    torch: Any = sys.modules["torch"]
    values = data.detach()
    if values.is_quantized or values.is_nested:
        kind = "quantized" if values.is_quantized else "nested"
        raise DataError(f"tensor {name} is given a {kind} tensor of torch; make it a plain one first")
    if values.layout == torch.strided:
        return DenseArray(_as_numpy(values, torch))
    try:
        coo = values.to_sparse_coo().coalesce()  # in torch, the values of a repeated coordinate are added up
    except RuntimeError as error:
        raise DataError(f"tensor {name}: {values.layout} has no entries to take: {error}") from None
    coordinates, numbers = coo.indices().cpu().numpy(), _as_numpy(coo.values(), torch)
    if numbers.ndim > 1:  # a hybrid tensor, whose last axes are dense
        inside = np.indices(numbers.shape[1:]).reshape((numbers.ndim - 1, -1))
        outside = np.repeat(coordinates, inside.shape[1], axis=1)
        coordinates = np.vstack([outside, np.tile(inside, len(numbers))])
    return EntryArrays(coordinates, numbers.reshape(-1), tuple(coo.shape))


def _as_numpy(values: Any, torch: Any) -> Any:  # noqa: ANN401
    """Return an array of the same numbers; bfloat16, which numpy lacks, becomes float32."""
    if values.dtype == torch.bfloat16:
        values = values.float()
    return values.cpu().resolve_conj().resolve_neg().numpy()
