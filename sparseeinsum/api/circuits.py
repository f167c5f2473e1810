"""API: quantum circuits as programs: a gate is a tensor, a wire is a label, and a state is a sum of products."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.api.database import Database
from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import ParseError, SemanticsError, ShapeError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.programs import program

_IGNORED = ("barrier", "measure")  # a state is that before it is measured
_VALUES = {"0": "Qubit_0", "1": "Qubit_1"}


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """A gate.

    Attributes:
        name: Its name in OpenQASM.
        matrix: A unitary matrix; of the qubits that it acts on, the first one is the most significant bit of an index.
        qubits: The numbers of these qubits.
    """

    name: str
    matrix: NDArray[np.complex128]
    qubits: tuple[int, ...]


@dataclass(frozen=True, eq=False)  # no slots: the tensors are cached
class Circuit:
    """A quantum circuit, whose qubits all begin in state 0. Made by `read_qasm`.

    Attributes:
        qubits: The names of the qubits, such as q[0], in the order of their declarations.
        gates: The gates in order.
    """

    qubits: tuple[str, ...]
    gates: tuple[Gate, ...]

    def __repr__(self) -> str:
        return f"<circuit of {len(self.qubits)} qubits and {len(self.gates)} gates>"

    @cached_property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The tensors that programs of the circuit read, by name: gates, complex if any is, and the states 0 and 1."""
        arrays = {name: _tensor(gate.matrix) for gate, name in zip(self.gates, self._names, strict=True)}
        is_real = not any(array.imag.any() for array in arrays.values())
        arrays |= {name: np.eye(2, dtype=complex)[int(value)] for value, name in _VALUES.items()}
        return {name: array.real.copy() if is_real else array for name, array in arrays.items()}

    def load(self, database: Database) -> None:
        """Store the tensors that programs of the circuit read; they replace tensors of the same names.

        Args:
            database: The database that takes the tensors.
        """
        for name, array in self.tensors.items():
            database.tensor(name, array)

    def state(self) -> Program:
        """The program of `State`, which has an axis of bound 2 for every qubit: the amplitudes of all basis states."""
        factors, wires = self._network()
        return program(f"State[{', '.join(wires)}] = sum({' * '.join(factors)})")

    def amplitude(self, bits: str) -> Program:
        """The program of the number `Amplitude`, that of one basis state.

        Args:
            bits: The state of every qubit in order, such as 010.

        Raises:
            ShapeError: There are fewer or more bits than qubits, or characters that are neither 0 nor 1.
        """
        if len(bits) != len(self.qubits) or not set(bits) <= set(_VALUES):
            raise ShapeError(f"{bits!r} is no basis state of {len(self.qubits)} qubits; give as many digits, 0 or 1")
        factors, wires = self._network()
        closed = [f"{_VALUES[bit]}[{wire}]" for bit, wire in zip(bits, wires, strict=True)]
        return program(f"Amplitude[] = sum({' * '.join([*factors, *closed])})")

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The name of every gate's tensor; gates of the same matrix share one."""
        names: dict[bytes, str] = {}
        for gate in self.gates:
            taken = sum(name.startswith(f"Gate_{gate.name}_") for name in names.values())
            names.setdefault(gate.matrix.tobytes(), f"Gate_{gate.name}_{taken}")
        return tuple(names[gate.matrix.tobytes()] for gate in self.gates)

    def _network(self) -> tuple[list[str], list[str]]:
        """The factors of the state, and the labels of the wires at its end."""
        wires = [f"q{number}" for number in range(len(self.qubits))]
        factors = [f"{_VALUES['0']}[{wire}]" for wire in wires]
        for number, (gate, name) in enumerate(zip(self.gates, self._names, strict=True)):
            before = [wires[qubit] for qubit in gate.qubits]
            for qubit in gate.qubits:
                wires[qubit] = f"q{qubit}_{number + 1}"
            after = [wires[qubit] for qubit in gate.qubits]
            factors.append(f"{name}[{', '.join((*after, *before))}]")
        return factors, wires


def read_qasm(path: str | Path) -> Circuit:
    """Read a quantum circuit in OpenQASM 2.

    Barriers are left out, and so are measurements, as if all qubits were measured at the end. So a qubit that was
    measured may only control gates, which leaves the probabilities of all outcomes as they are.

    Args:
        path: The file.

    Raises:
        OSError: The file cannot be read.
        ParseError: It is no OpenQASM 2; the message has the line and the column.
        SemanticsError: The circuit resets qubits, depends on measured values, or changes a measured qubit.
        PackageError: The package qiskit is not installed.
    """
    qasm: Any = imported("qiskit.qasm2", "qasm", "OpenQASM")
    operator: Any = imported("qiskit.quantum_info", "qasm", "OpenQASM").Operator
    text = Path(path).read_text(encoding="utf-8")
    try:
        circuit = qasm.loads(text, custom_instructions=qasm.LEGACY_CUSTOM_INSTRUCTIONS)
    except qasm.QASM2ParseError as error:
        raise _parse_error(str(error.message), text, str(path)) from None
    number_of = {qubit: number for number, qubit in enumerate(circuit.qubits)}
    names = [f"{register.name}[{position}]" for register in circuit.qregs for position in range(register.size)]
    gates = []
    measured: set[int] = set()
    for instruction in circuit.data:
        name = str(instruction.operation.name)
        qubits = tuple(number_of[qubit] for qubit in instruction.qubits)
        if name == "measure":
            measured.update(qubits)
        if name in _IGNORED:
            continue
        if not hasattr(instruction.operation, "to_matrix"):
            raise SemanticsError(f"{path}: {name} is no gate; only circuits of gates have a state to compute")
        gate = Gate(name, _first_qubit_most_significant(operator(instruction.operation).data), qubits)
        for qubit in measured.intersection(qubits):
            if _changes(gate, qubit):
                raise SemanticsError(f"{path}: {name} changes {names[qubit]} after it is measured; measure it last")
        gates.append(gate)
    return Circuit(tuple(names), tuple(gates))


def _changes(gate: Gate, qubit: int) -> bool:
    """Whether a gate may change the value of a qubit, which does not only control it."""
    position = gate.qubits.index(qubit)
    by_value = np.moveaxis(_tensor(gate.matrix), (position, len(gate.qubits) + position), (0, 1))
    return bool(by_value[0, 1].any() or by_value[1, 0].any())


def _first_qubit_most_significant(matrix: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """A matrix of qiskit, in which the first qubit is the least significant bit, with the bits in reverse."""
    tensor = _tensor(matrix)
    count = tensor.ndim // 2
    axes = [*reversed(range(count)), *reversed(range(count, 2 * count))]
    return np.ascontiguousarray(tensor.transpose(axes).reshape(matrix.shape))


def _tensor(matrix: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """A matrix with an axis for every bit of its indices: first those after the gate, then those before it."""
    return matrix.reshape((2,) * (2 * (len(matrix).bit_length() - 1)))


def _parse_error(message: str, text: str, path: str) -> ParseError:
    """The error of a message that begins with a place, as in `<input>:1,25: 'foo' is not defined in this scope`."""
    place, _, problem = message.partition(": ")
    line, _, column = place.rpartition(":")[2].partition(",")
    if not (line.isdigit() and column.isdigit()):
        return ParseError(message, text, 1, 1, path)
    return ParseError(problem, text, int(line), int(column) + 1, path)
