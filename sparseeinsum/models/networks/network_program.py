"""Models: a network as program text, with the tensors that it reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.models.networks.boolean_selections import BooleanSelection
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.presentation.spelling import did_you_mean


class TensorStore(Protocol):
    """What tensors are loaded into: a `Database`."""

    def tensor(
        self,
        name: str,
        data: object,
        axes: Sequence[str] | None = None,
        shape: Sequence[int | None] | None = None,
        fill: bool | float | complex | None = None,
        dtype: str | None = None,
    ) -> object:
        """Load a tensor, as `Database.tensor` does."""


@dataclass(frozen=True, slots=True)
class NetworkInput:
    """What a network reads that its file does not contain.

    Attributes:
        tensor: The name of the tensor.
        shape: Its shape.
        dtype: Its dtype.
    """

    tensor: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def declaration(self) -> str:
        """The declaration of the tensor in program text."""
        axes = ", ".join(f"axis{position}: {size}" for position, size in enumerate(self.shape))
        return f"tensor {self.tensor}[{axes}] dtype {self.dtype}"


@dataclass(frozen=True, eq=False)  # no slots: the program is cached
class Network:
    """A trained network. Made by `read_onnx`.

    Attributes:
        text: The program.
        inputs: The tensors to load before it runs, by their names in the file.
        outputs: The names of the results, by their names in the file.
        weights: The arrays of the file that the program reads, by name of tensor; axes of one index are left out.
        selections: Sparse tensors of truth values that the program reads, which move elements, by name of tensor.
    """

    text: str
    inputs: Mapping[str, NetworkInput]
    outputs: Mapping[str, str]
    weights: Mapping[str, Array]
    selections: Mapping[str, BooleanSelection]

    def __repr__(self) -> str:
        count = len(self.program.einsums)
        return f"<network of {count} EinSums: {', '.join(self.inputs)} -> {', '.join(self.outputs)}>"

    @cached_property
    def program(self) -> Program:
        """The statements of the network, parsed; its inputs are declared with shapes and dtypes."""
        return lower_text(self.text)

    def load(self, database: TensorStore) -> None:
        """Store the weights and the selections; they replace tensors of the same names.

        Args:
            database: The database that takes the tensors.
        """
        for name, array in self.weights.items():
            database.tensor(name, array)
        for name, selection in self.selections.items():
            database.tensor(name, (selection.coordinates, selection.values), shape=selection.shape)

    def load_inputs(self, database: TensorStore, inputs: Mapping[str, object]) -> None:
        """Store inputs with the dtypes that the program expects; they replace tensors of the same names.

        Args:
            database: The database.
            inputs: What `Database.tensor` reads, by the names of the inputs in the file.

        Raises:
            DataError: The network has no such input.
            ShapeError: Data have another shape than the input.
        """
        for name, data in inputs.items():
            if name not in self.inputs:
                raise DataError(f"the network has no input {name}; {did_you_mean(name, self.inputs, 'it has')}")
            network_input = self.inputs[name]
            try:
                database.tensor(network_input.tensor, data, shape=network_input.shape, dtype=network_input.dtype)
            except ShapeError as error:
                raise ShapeError(
                    f"{error}; give it that shape, or read the network with the sizes of your data"
                ) from None
