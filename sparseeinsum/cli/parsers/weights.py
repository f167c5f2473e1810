"""The command line: parsers of the commands that load and save weights of models."""

from sparseeinsum.cli.parsers.command import TENSORS, Commands, LateFunction, add_command
from sparseeinsum.cli.parsers.option_values import new_names

_WEIGHTS = "sparseeinsum.cli.weights"


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
    parser.set_defaults(command=LateFunction(_WEIGHTS, "load_weights"))


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
    parser.set_defaults(command=LateFunction(_WEIGHTS, "save_weights"))
