"""The command line: the commands load-weights, save-weights and load-network."""

import argparse
from pathlib import Path

import sparseeinsum as se
from sparseeinsum.cli.database_opening import open_database, open_or_create


def load_weights(arguments: argparse.Namespace) -> None:
    """Load the weights of a file, and print the names and the shapes of their tensors."""
    with open_or_create(arguments.database) as database:
        names = database.load_weights(arguments.source, arguments.prefix, arguments.names)
        stored = database.tensors()
    for name, tensor in names.items():
        axes = ", ".join(str(axis.bound) for axis in stored[tensor].tensor.axes)
        print(f"{name}: {tensor}[{axes}] {stored[tensor].tensor.dtype}")


def save_weights(arguments: argparse.Namespace) -> None:
    """Write tensors to a file."""
    with open_database(arguments.database) as database:
        database.save_weights(arguments.file, arguments.tensors or None)


def load_network(arguments: argparse.Namespace) -> None:
    """Load the weights of a network in the ONNX format, and write its program to a file or to standard output."""
    network = se.read_onnx(arguments.source, **arguments.sizes)
    with open_or_create(arguments.database) as database:
        network.load(database)
    if arguments.output is None:
        print(network.text, end="")
    else:
        Path(arguments.output).write_text(network.text, encoding="utf-8")
