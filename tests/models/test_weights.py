"""Weights go from files and state dicts into tensors, and back, without a change."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reading import read_back

import sparseeinsum as se
from sparseeinsum import cli
from sparseeinsum.models.tensor_names import tensor_name, tensor_names

RANDOM = np.random.default_rng(0)
WEIGHTS: dict[str, Any] = {
    "encoder.layers.0.weight": RANDOM.standard_normal((3, 4)).astype(np.float32),
    "encoder.layers.0.bias": RANDOM.standard_normal(4),
    "0.steps": np.array(7),
    "mask": np.array([True, False, True]),
    "half": np.array([1.5, 65504, 6e-8], np.float16),
    "spectrum": np.array([[1 + 2j, 3]], np.complex64),
}
TENSORS = {
    "encoder.layers.0.weight": "encoder_layers_0_weight",
    "encoder.layers.0.bias": "encoder_layers_0_bias",
    "0.steps": "_0_steps",
    "mask": "mask",
    "half": "half",
    "spectrum": "spectrum",
}
SUFFIXES = (".safetensors", ".npz")


def write(path: Path, arrays: dict[str, Any]) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        safetensors.numpy.save_file(arrays, path)
    return path


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_and_back(shared_db: se.Database, tmp_path: Path, suffix: str) -> None:
    names = shared_db.load_weights(write(tmp_path / f"model{suffix}", WEIGHTS))
    assert names == TENSORS
    for name, tensor in names.items():
        np.testing.assert_array_equal(read_back(shared_db, tensor), WEIGHTS[name])
    saved = tmp_path / f"saved{suffix}"
    shared_db.save_weights(saved, names)
    with np.load(saved) if suffix == ".npz" else safetensors.safe_open(saved, "np") as file:
        assert set(file.keys()) == set(WEIGHTS)
        for name in WEIGHTS:
            array = file[name] if suffix == ".npz" else file.get_tensor(name)
            wider = np.float32 if name == "half" else WEIGHTS[name].dtype
            assert array.dtype == wider
            np.testing.assert_array_equal(array, WEIGHTS[name])
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


@settings(max_examples=15)
@given(
    weights=st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9._-]{0,8}", fullmatch=True),
        hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=3, max_side=3), elements=st.floats(width=32)),
        min_size=1,
        max_size=3,
    )
)
def test_any_weights(tmp_path_factory: pytest.TempPathFactory, weights: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    with se.connect() as db:
        try:
            names = db.load_weights(weights, prefix="model_")
        except se.DataError as error:
            assert "would both be the tensor" in str(error)
            return
        db.save_weights(path, names)
    read = safetensors.numpy.load_file(path)
    assert read.keys() == weights.keys()
    for name, array in weights.items():
        np.testing.assert_array_equal(read[name], array + np.float32(0))  # the sign of zero is not kept


def test_narrow_floats_become_float32(db: se.Database, tmp_path: Path) -> None:
    numbers = np.array([1.0, -0.5, 3.0, np.inf])
    arrays = {"wide": numbers.astype(ml_dtypes.bfloat16), "half": numbers.astype(np.float16)}
    db.load_weights(write(tmp_path / "model.safetensors", arrays))
    for name in arrays:
        assert db.tensors()[name].tensor.dtype == "float32"
        np.testing.assert_array_equal(read_back(db, name), numbers)
    arrays = {"narrow": numbers[:3].astype(ml_dtypes.float8_e4m3fn)}
    with pytest.raises(se.DataError, match="narrow is F8_E4M3, which numpy cannot hold"):
        db.load_weights(write(tmp_path / "model.safetensors", arrays))


def test_chosen_names_and_prefixes(db: se.Database) -> None:
    assert db.load_weights(WEIGHTS, names={"0.steps": "Steps"}) == {"0.steps": "Steps"}
    assert list(db.tensors()) == ["Steps"]
    assert db.load_weights({"0.w": np.ones(2)}, prefix="net.") == {"0.w": "net_0_w"}


def test_a_program_reads_weights(db: se.Database, tmp_path: Path) -> None:
    db.load_weights(write(tmp_path / "model.npz", WEIGHTS))
    result = db.run("Y[j] = sum(encoder_layers_0_weight[i, j]) + encoder_layers_0_bias[j]")["Y"].to_numpy()
    expected = WEIGHTS["encoder.layers.0.weight"].sum(0) + WEIGHTS["encoder.layers.0.bias"]
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("weights", "names", "message"),
    [
        ({"a.b": np.ones(1), "a_b": np.ones(1)}, None, "a.b and a_b would both be the tensor a_b"),
        ({"W": np.ones(1), "w": np.ones(1)}, None, "W and w would both be the tensor w"),
        ({"state": {"w": np.ones(1)}}, None, "state is no array, but has parts of its own: 'w'"),
        ({"epoch": 3}, None, "epoch is no array, but int"),
        ({"w": np.array(["text"])}, None, "tensor w"),
        ({"w": np.ones(1)}, {"v": "V"}, "the dict has no v; it has w"),
        ({f"w{number}": np.ones(1) for number in range(100)}, {"x": "X"}, "no x; it has w0, .*, w39 and 60 more"),
        ({"w": np.ones(1)}, {"w": "a.b"}, "'a.b' cannot name a tensor"),
        ({"w": np.ones(1), "v": np.ones(1)}, {"w": "A", "v": "a"}, "two weights get the same tensor"),
    ],
)
def test_refused_weights(db: se.Database, weights: dict[str, Any], names: dict[str, str] | None, message: str) -> None:
    with pytest.raises(se.DataError, match=message):
        db.load_weights(weights, names=names)
    assert db.tensors() == {}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("model.h5", b"", r"no suffix of a format of weights; .*\.safetensors"),
        ("model.safetensors", b"no header", "no file of safetensors"),
        ("model.npz", b"no archive", "no .npz file of plain arrays"),
    ],
)
def test_refused_files(db: se.Database, tmp_path: Path, file: str, content: bytes, message: str) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(se.DataError, match=message):
        db.load_weights(tmp_path / file)


def test_missing_files_and_packages(db: se.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for suffix in SUFFIXES:
        with pytest.raises(FileNotFoundError):
            db.load_weights(tmp_path / f"missing{suffix}")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(se.PackageError, match=r"sparseeinsum\[safetensors\]"):
        db.load_weights(write(tmp_path / "model.safetensors", {"w": np.ones(1)}))


def test_what_cannot_be_saved(db: se.Database, tmp_path: Path) -> None:
    db.tensor("C", np.array([1j]))
    with pytest.raises(se.DataError, match="C is complex128, which safetensors lacks"):
        db.save_weights(tmp_path / "c.safetensors")
    with pytest.raises(se.CatalogueError, match="no tensor W to save; the database has C"):
        db.save_weights(tmp_path / "c.npz", ["W"])
    assert list(tmp_path.iterdir()) == []


def test_state_dicts_of_torch(db: se.Database, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", exc_type=ImportError)
    layer = torch.nn.Linear(3, 2).to(torch.bfloat16)
    names = db.load_weights(layer.state_dict(), prefix="layer_")
    assert names == {"weight": "layer_weight", "bias": "layer_bias"}
    np.testing.assert_array_equal(read_back(db, "layer_weight"), layer.weight.detach().float().numpy())
    db.save_weights(tmp_path / "layer.pt", names)
    torch.nn.Linear(3, 2).load_state_dict(torch.load(tmp_path / "layer.pt"))
    assert db.load_weights(tmp_path / "layer.pt", prefix="again_")["bias"] == "again_bias"
    torch.save(SimpleNamespace(w=1), tmp_path / "other.pt")
    with pytest.raises(se.DataError, match="holds more than tensors"):
        db.load_weights(tmp_path / "other.pt")


def test_at_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "model.npz", {"0.weight": np.ones((2, 3), np.float32), "0.bias": np.zeros(2)})
    database, saved = str(tmp_path / "models.duckdb"), tmp_path / "saved.safetensors"
    assert cli.main(["load-weights", str(file), "--database", database, "--prefix", "net"]) == 0
    assert capsys.readouterr().out == "0.weight: net0_weight[2, 3] float32\n0.bias: net0_bias[2] float64\n"
    assert cli.main(["load-weights", str(file), "--database", database, "--names", "0.bias=b"]) == 0
    assert cli.main(["save-weights", str(saved), "b", "--database", database]) == 0
    np.testing.assert_array_equal(safetensors.numpy.load_file(saved)["b"], np.zeros(2))
    with pytest.raises(SystemExit):
        cli.main(["load-weights", str(file), "--database", database, "--names", "0.bias"])
    assert "0.bias is not NAME=TENSOR" in capsys.readouterr().err
    assert cli.main(["load-weights", str(tmp_path / "m.h5"), "--database", str(tmp_path / "new.duckdb")]) == 1
    assert not (tmp_path / "new.duckdb").exists()


@given(st.text())
def test_every_text_has_a_name(text: str) -> None:
    assert se.program(f"Y[] = sum({tensor_name(text)}[i])").einsums
    assert tensor_names([text])[text] == tensor_name(text)
