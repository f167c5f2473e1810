"""Models: how the operators of ONNX are written in the language: one record for each."""
