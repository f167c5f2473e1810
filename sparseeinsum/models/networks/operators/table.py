"""Models: the table of the operators of ONNX."""

from sparseeinsum.models.networks.operators import (
    elementwise,
    linear_operators,
    quantization,
    reductions,
    resizing,
    scattering,
    shapes,
    windows,
)

OPERATORS = {
    record.name: record
    for module in (elementwise, reductions, shapes, linear_operators, quantization, resizing, scattering, windows)
    for record in module.OPERATORS
}
