"""Language: numpy's functions of numbers, by the names that they have in programs."""

from collections.abc import Mapping

import numpy as np

_UFUNCS: dict[object, str] = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.divide: "div",
    np.power: "pow",
    np.negative: "neg",
    np.absolute: "abs",
    np.exp: "exp",
    np.log: "log",
    np.sqrt: "sqrt",
    np.sign: "sign",
    np.tanh: "tanh",
    np.conjugate: "conj",
    np.minimum: "min",
    np.maximum: "max",
    np.less: "lt",
    np.less_equal: "le",
    np.greater: "gt",
    np.greater_equal: "ge",
    np.equal: "eq",
    np.not_equal: "ne",
    np.logical_and: "and",
    np.logical_or: "or",
    np.logical_not: "not",
}


def name_of_ufunc(ufunc: np.ufunc, method: str, keywords: Mapping[str, object]) -> str:
    """The function of programs that one of numpy is.

    Raises:
        TypeError: There is none, or it is called in another way than on numbers alone.
    """
    if ufunc in _UFUNCS and method == "__call__" and not keywords:
        return _UFUNCS[ufunc]
    what = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    known = ", ".join(sorted(name.__name__ for name in _UFUNCS if isinstance(name, np.ufunc)))
    raise TypeError(
        f"{what} cannot stand in a program, nor can arguments by keyword; known are {known}; register "
        "functions of your own with se.function"
    )
