"""Pipeline: keeps Python from collecting garbage while it plans."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Let no object be looked at for cyclic garbage in the context, unless somebody else asks for that.

    Planning makes many objects, most of which are needed until it ends, and hardly any cycles.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
