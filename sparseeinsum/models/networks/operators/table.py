"""Models: the table of the operators of ONNX."""

from sparseeinsum.models.networks.operators import elementwise, products, reductions, shapes, windows

OPERATORS = {
    record.name: record
    for module in (elementwise, reductions, shapes, products, windows)
    for record in module.OPERATORS
}
