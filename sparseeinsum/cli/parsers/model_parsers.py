"""The command line: parsers of the commands that load and save models."""

from sparseeinsum.cli.parsers.command import TENSORS, Commands, LateFunction, add_command
from sparseeinsum.cli.parsers.option_values import new_names, sizes

_MODELS = "sparseeinsum.cli.model_commands"


def add_load_weights(subparsers: Commands) -> None:
    """Add the command `load-weights`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "load-weights",
        "make tensors of the weights of a model, one for each array of a file",
        "sparseeinsum load-weights --database models.duckdb model.safetensors --prefix bert_",
    )
    parser.add_argument("source", help="a .safetensors or .npz file, or a state dict of torch (.pt, .pth, .bin)")
    parser.add_argument(
        "-d", "--database", required=True, help="where to: a DuckDB file, created if missing, or postgresql://..."
    )
    parser.add_argument("--prefix", default="", help="what the names of all tensors begin with")
    parser.add_argument(
        "--names",
        type=new_names,
        metavar="NAME=TENSOR,...",
        help="the weights to load, and the names of their tensors (default: all, with _ in place of dots)",
    )
    parser.set_defaults(command=LateFunction(_MODELS, "load_weights"))


def add_save_weights(subparsers: Commands) -> None:
    """Add the command `save-weights`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "save-weights",
        "write tensors to a file of weights, as dense arrays",
        "sparseeinsum save-weights --database models.duckdb model.safetensors W1 W2",
    )
    parser.add_argument("file", help="the file, whose suffix gives the format: .safetensors, .npz or .pt")
    parser.add_argument("tensors", nargs="*", help="names of tensors; all by default")
    parser.add_argument("-d", "--database", required=True, help=TENSORS)
    parser.set_defaults(command=LateFunction(_MODELS, "save_weights"))


def add_load_network(subparsers: Commands) -> None:
    """Add the command `load-network`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "load-network",
        "load the weights of a network in the ONNX format, and write its program",
        "sparseeinsum load-network model.onnx --database models.duckdb --sizes batch=1 --output model.ein",
    )
    parser.add_argument("source", help="the file, such as model.onnx")
    parser.add_argument(
        "-d", "--database", required=True, help="where to: a DuckDB file, created if missing, or postgresql://..."
    )
    parser.add_argument(
        "--sizes",
        type=sizes,
        default={},
        metavar="AXIS=SIZE,...",
        help="the sizes of axes that have a name in the file, as in batch=1",
    )
    parser.add_argument("-o", "--output", help="where to write the program (default: standard output)")
    parser.set_defaults(command=LateFunction(_MODELS, "load_network"))
