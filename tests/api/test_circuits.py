"""Circuits in OpenQASM have the amplitudes that gates give when they are applied to a state vector one by one."""

from pathlib import Path

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.api.circuits import Circuit
from sparseeinsum.errors import ParseError, SemanticsError, ShapeError

HEADER = 'OPENQASM 2.0;\ninclude "qelib1.inc";\n'
# Gates of one to three qubits, parameters, a gate of its own, two registers, and measured qubits that control others.
MIXED = (
    HEADER
    + """gate turn(angle) x, y { rx(angle) x; cx x, y; u3(0.1, angle, 0.3) y; }
qreg a[3];
qreg b[2];
creg c[1];
creg d[2];
h a;
turn(pi / 3) a[2], b[0];
barrier a, b;
cu1(0.2) b[1], a[0];
ccx a[0], b[0], b[1];
t a[1];
swap a[1], b[1];
rz(-1.5) b[0];
measure a[0] -> c[0];
cx a[0], b[1];
cz a[0], a[2];
measure b -> d;
"""
)


def write(folder: Path, text: str) -> Path:
    path = folder / "circuit.qasm"
    path.write_text(text)
    return path


def state_vector(circuit: Circuit) -> np.ndarray:
    """The state after all gates; the first qubit of a gate is the most significant bit of its matrix."""
    count = len(circuit.qubits)
    state = np.zeros((2,) * count, complex)
    state[(0,) * count] = 1
    for gate in circuit.gates:
        size = len(gate.qubits)
        tensor = gate.matrix.reshape((2,) * (2 * size))
        state = np.moveaxis(np.tensordot(tensor, state, (range(size, 2 * size), gate.qubits)), range(size), gate.qubits)
    return state


@pytest.mark.engines("duckdb", "postgresql")
def test_states_and_amplitudes(db: se.Database, tmp_path: Path) -> None:
    circuit = se.read_qasm(write(tmp_path, MIXED))
    assert repr(circuit) == "<circuit of 5 qubits and 11 gates>"
    assert circuit.qubits == ("a[0]", "a[1]", "a[2]", "b[0]", "b[1]")
    expected = state_vector(circuit)
    circuit.load(db)
    np.testing.assert_allclose(db.run(circuit.state())["State"].to_numpy(), expected, atol=1e-12)
    for bits in ("00000", "10110", "01011"):
        amplitude = db.run(circuit.amplitude(bits))["Amplitude"].to_numpy()
        np.testing.assert_allclose(amplitude, expected[tuple(map(int, bits))], atol=1e-12)


def test_matrices_are_those_of_textbooks(tmp_path: Path) -> None:
    circuit = se.read_qasm(write(tmp_path, HEADER + "qreg q[2]; cx q[0], q[1]; cx q[1], q[0]; s q[1]; h q[0];"))
    controlled, again, phase, hadamard = circuit.gates
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    np.testing.assert_array_equal(controlled.matrix, expected)
    np.testing.assert_array_equal(again.matrix, expected)
    assert (controlled.qubits, again.qubits) == ((0, 1), (1, 0))
    np.testing.assert_allclose(phase.matrix, np.diag([1, 1j]))
    np.testing.assert_allclose(hadamard.matrix, np.array([[1, 1], [1, -1]]) / np.sqrt(2))


def test_random_circuits(db: se.Database, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        gates = []
        for _ in range(20):
            first, second = rng.choice(4, 2, replace=False)
            angles = ", ".join(f"{angle:.3f}" for angle in rng.uniform(-3, 3, 3))
            gates.append(str(rng.choice([f"u3({angles}) q[{first}];", f"cx q[{first}], q[{second}];"])))
        circuit = se.read_qasm(write(tmp_path, HEADER + "qreg q[4];\n" + "\n".join(gates)))
        circuit.load(db)
        np.testing.assert_allclose(db.run(circuit.state())["State"].to_numpy(), state_vector(circuit), atol=1e-12)


def test_real_gates_make_a_real_state(db: se.Database, tmp_path: Path) -> None:
    circuit = se.read_qasm(write(tmp_path, HEADER + "qreg q[2]; h q[0]; cx q[0], q[1];"))
    circuit.load(db)
    state = db.run(circuit.state())["State"].to_numpy()
    assert state.dtype == np.float64
    np.testing.assert_allclose(state, np.eye(2) / np.sqrt(2))


def test_an_amplitude_of_many_qubits(db: se.Database, tmp_path: Path) -> None:
    """Of 40 qubits, whose state has a trillion amplitudes."""
    chain = "".join(f"cx q[{number}], q[{number + 1}];\n" for number in range(39))
    circuit = se.read_qasm(write(tmp_path, HEADER + "qreg q[40];\nh q[0];\n" + chain + "z q[39];\n" * 3))
    circuit.load(db)
    for bits, expected in (("0" * 40, 0.5**0.5), ("1" * 40, -(0.5**0.5)), ("0" * 39 + "1", 0.0)):
        amplitude = db.run(circuit.amplitude(bits))["Amplitude"].to_numpy()
        np.testing.assert_allclose(amplitude, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (HEADER + "qreg q[1];\nfoo q[0];", ParseError, r"circuit.qasm:4:1: 'foo' is not defined"),
        ("OPENQASM 3.0; qubit q;", ParseError, "circuit.qasm"),
        ("qreg", ParseError, "circuit.qasm"),
        (HEADER + "qreg q[1]; reset q[0];", SemanticsError, "reset is no gate"),
        (HEADER + "qreg q[1]; creg c[1]; if (c == 1) x q[0];", SemanticsError, "if_else is no gate"),
        (
            HEADER + "qreg q[2]; creg c[1]; measure q[1] -> c[0]; cx q[0], q[1];",
            SemanticsError,
            r"cx changes q\[1\] after it is measured; measure it last",
        ),
    ],
)
def test_what_is_no_circuit_of_gates(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        se.read_qasm(write(tmp_path, text))


def test_basis_states_have_a_bit_per_qubit(tmp_path: Path) -> None:
    circuit = se.read_qasm(write(tmp_path, HEADER + "qreg q[2]; x q[0];"))
    for bits in ("0", "012", "0a"):
        with pytest.raises(ShapeError, match="is no basis state of 2 qubits; give as many digits, 0 or 1"):
            circuit.amplitude(bits)
