"""The version of this package, and of what it puts into databases."""

__version__ = "0.4.0"
