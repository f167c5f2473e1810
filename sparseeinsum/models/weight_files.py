"""Models: reads and writes files of named arrays: safetensors, npz, and state dicts of torch."""

import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import DataError
from sparseeinsum.operators.dtypes import Array

Weights = Mapping[str, object]  # arrays of numpy or tensors of torch, by name


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """A kind of files.

    Attributes:
        title: What messages call it.
        suffixes: How the names of its files end, in lower case.
        read: Reads all arrays of a file.
        write: Writes arrays to a new file.
    """

    title: str
    suffixes: tuple[str, ...]
    read: Callable[[Path], Weights]
    write: Callable[[Path, Mapping[str, Array]], None]


def read_weights(path: Path) -> Weights:
    """The arrays of a file, by name, in the order of the file.

    bfloat16 becomes float32, which holds all its values.

    Raises:
        OSError: The file cannot be read.
        DataError: The name ends in no known suffix, or the file holds something else.
        PackageError: The package that reads the format is not installed.
    """
    return {name: as_storable(name, data) for name, data in _format_of(path).read(path).items()}


def write_weights(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays to a file, which appears, or replaces another one, when it is complete.

    Raises:
        OSError: The file cannot be written.
        DataError: The name ends in no known suffix, or the format has no such dtype.
        PackageError: The package that writes the format is not installed.
    """
    file_format = _format_of(path)
    descriptor, incomplete = tempfile.mkstemp(suffix=path.suffix, prefix=f".{path.stem}-", dir=path.parent)
    os.close(descriptor)
    try:
        file_format.write(Path(incomplete), arrays)
        Path(incomplete).replace(path)
    finally:
        Path(incomplete).unlink(missing_ok=True)


def as_storable(name: str, data: object) -> object:
    """Weights as an array of a dtype that tensors have, or unchanged, if the reader of the kind converts it.

    Raises:
        DataError: They are no array; nested dicts are named.
    """
    if isinstance(data, Mapping):
        inner = ", ".join(map(repr, list(data)[:3]))
        raise DataError(f"{name} is no array, but has parts of its own: {inner}; load the part that has the weights")
    if not hasattr(data, "shape"):
        raise DataError(f"{name} is no array, but {type(data).__name__}; leave it out")
    if isinstance(data, np.ndarray) and data.dtype.name == "bfloat16":
        return data.astype(np.float32)  # a dtype of the package ml_dtypes
    return data


def _format_of(path: Path) -> WeightFormat:
    fitting = next((one for one in _FORMATS if path.suffix.lower() in one.suffixes), None)
    if fitting is None:
        known = ", ".join(f"{suffix} ({one.title})" for one in _FORMATS for suffix in one.suffixes)
        raise DataError(f"{path} has no suffix of a format of weights; these are known: {known}")
    return fitting


def _read_safetensors(path: Path) -> Weights:
    package: Any = imported("safetensors", "safetensors", "a file of safetensors")
    path.open("rb").close()  # the error of the system, if there is one
    try:
        with package.safe_open(path, framework="np") as file:
            return {name: _of_safetensors(file, name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
    except package.SafetensorError as error:
        raise DataError(f"{path} is no file of safetensors: {error}") from None


def _of_safetensors(file: Any, name: str) -> Array:  # noqa: ANN401  # the package has no types
    try:
        array: Array = file.get_tensor(name)
    except AttributeError:  # of numpy, which has no such dtype
        dtype = file.get_slice(name).get_dtype()
        raise DataError(f"{name} is {dtype}, which numpy cannot hold; convert it before, as to float32") from None
    return array


def _write_safetensors(path: Path, arrays: Mapping[str, Array]) -> None:
    package: Any = imported("safetensors.numpy", "safetensors", "a file of safetensors")
    wrong = [name for name, array in arrays.items() if array.dtype == np.complex128]
    if wrong:
        raise DataError(f"{wrong[0]} is complex128, which safetensors lacks; write an .npz file")
    package.save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)


def _read_npz(path: Path) -> Weights:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, zipfile.BadZipFile, EOFError, AttributeError) as error:
        raise DataError(f"{path} is no .npz file of plain arrays: {error}") from None


def _write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    if "file" in arrays:
        raise DataError("numpy writes no array of the name file; give it another name in the file")
    np.savez(path, **dict(arrays))  # type: ignore[arg-type]  # no name is that of an option


def _read_torch(path: Path) -> Weights:
    torch: Any = imported("torch", "torch", "a state dict of torch")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError) as error:
        raise DataError(f"{path} cannot be read by torch: {error}") from None
    except Exception as error:
        if type(error).__name__ != "UnpicklingError":
            raise
        problem = f"{path} holds more than tensors, which torch does not read safely"
        raise DataError(f"{problem}; save the state dict of the model: torch.save(model.state_dict(), ...)") from None
    if not isinstance(state, Mapping):
        raise DataError(f"{path} holds {type(state).__name__}, no dict; save the state dict of the model")
    return state


def _write_torch(path: Path, arrays: Mapping[str, Array]) -> None:
    torch: Any = imported("torch", "torch", "a state dict of torch")
    torch.save({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}, path)


_FORMATS: Sequence[WeightFormat] = (
    WeightFormat("safetensors", (".safetensors",), _read_safetensors, _write_safetensors),
    WeightFormat("numpy", (".npz",), _read_npz, _write_npz),
    WeightFormat("a state dict of torch", (".pt", ".pth", ".bin"), _read_torch, _write_torch),
)
