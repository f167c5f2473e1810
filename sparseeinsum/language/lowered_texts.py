"""Language: keeps the programs of texts, which callers plan and run again."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.matrix_statements import Shapes
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

_MOST_TEXTS = 16
_LONGEST = 100_000  # characters of a text that is kept


@dataclass(frozen=True, slots=True)
class _LoweredText:
    """A program, and the functions and aggregates that were registered when its text was read."""

    program: Program
    registered: tuple[dict[str, object], dict[str, object]]


@dataclass(frozen=True, slots=True)
class LoweredTexts:
    """The programs of the last texts that mean the same in every database."""

    _lowered: dict[str, _LoweredText] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lower(self, text: str, shapes: Shapes) -> Program:
        """What `lower_text` returns for a text without values of parameters.

        It is kept unless a statement of linear algebra asks for the shape of a stored tensor.

        Raises: as `lower_text` does.
        """
        asked: list[str] = []

        def observed_shapes(name: str) -> Sequence[int | None] | None:
            asked.append(name)
            return shapes(name)

        registered: tuple[dict[str, object], dict[str, object]] = dict(FUNCTIONS), dict(USER_AGGREGATES)
        with self._lock:
            lowered = self._lowered.pop(text, None)
            if lowered is not None and lowered.registered == registered:
                self._lowered[text] = lowered
                return lowered.program
        program = lower_text(text, shapes=observed_shapes)
        if not asked and len(text) <= _LONGEST:
            with self._lock:
                self._lowered[text] = _LoweredText(program, registered)
                while len(self._lowered) > _MOST_TEXTS:
                    del self._lowered[next(iter(self._lowered))]
        return program

    def clear(self) -> None:
        """Forget the programs of all texts, so that the next ones are read again."""
        with self._lock:
            self._lowered.clear()


LOWERED_TEXTS = LoweredTexts()
