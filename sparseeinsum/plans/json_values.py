"""Plans: values of tensors and sizes as JSON, which has no NaN, infinity or complex number."""

import math
from datetime import date
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | dict[str, JsonValue] | None"


def json_value(value: object) -> JsonValue:
    """A value as JSON can hold it.

    NaN and infinity become the texts NaN, Infinity and -Infinity, as in PostgreSQL. Complex numbers become objects with
    `re` and `im`, dates and times become texts as in ISO 8601, and other values without a JSON type become their text.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _nonfinite(value)
        case complex():
            return {"re": json_value(value.real), "im": json_value(value.imag)}
        case dict():
            return {str(name): json_value(part) for name, part in value.items()}
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _nonfinite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
