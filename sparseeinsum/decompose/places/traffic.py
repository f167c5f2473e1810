"""Decompose, places: the floats that every machine sends to others and receives from them."""

from dataclasses import dataclass

import numpy as np

from sparseeinsum.decompose.places.blocks import Blocks, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Floats that every machine sends to others and receives from them."""

    sent: Floats
    received: Floats

    @property
    def floats(self) -> float:
        """All floats that are transferred."""
        return float(self.received.sum())

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.sent + other.sent, self.received + other.received)


def sent_copies(before: Blocks, after: Blocks, density: float) -> Traffic:
    """What goes to machines that lack some of the blocks `after`; all that have a part of it send an equal share.

    Args:
        before: The blocks that machines have.
        after: The blocks that they need.
        density: The floats at an index.
    """
    received = (after.sizes - before.common(after)) * density
    common = _common_with_others(before, after)
    available = common.sum(axis=0)
    share = np.divide(received, available, out=np.zeros_like(available), where=available > 0)
    return Traffic(common @ share, received)


def sent_partials(computed: Blocks, aggregated: Blocks, floats: float) -> Traffic:
    """What goes to the machines that aggregate blocks from all that have computed partial results of them.

    Args:
        computed: The blocks of partial results.
        aggregated: The blocks of the result.
        floats: The floats of all partial results that are sent.
    """
    common = _common_with_others(computed, aggregated)
    indices = common.sum()
    common *= floats / indices if indices else 0.0
    return Traffic(common.sum(axis=1), common.sum(axis=0))


def _common_with_others(before: Blocks, after: Blocks) -> Floats:
    """The indices that a block of one machine, in a row, has in common with that of another one, in a column."""
    common = before.by_row().common(after)
    np.fill_diagonal(common, 0.0)
    return common
