"""Models: the table of the operators of ONNX."""

from sparseeinsum.models.networks.operators import (
    elementwise,
    products,
    quantization,
    reductions,
    resizing,
    scattering,
    shapes,
    windows,
)

OPERATORS = {
    record.name: record
    for module in (elementwise, reductions, shapes, products, quantization, resizing, scattering, windows)
    for record in module.OPERATORS
}
