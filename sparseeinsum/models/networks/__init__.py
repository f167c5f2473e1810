"""Models: networks of other packages, written as program text."""
