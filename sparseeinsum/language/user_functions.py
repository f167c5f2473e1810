"""Language: the functions and aggregates of users that an EinGraph calls."""

from collections.abc import Collection

from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.scalar import functions_of
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import ScalarFunction
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES, UserAggregate


def user_functions_in(graph: EinGraph) -> dict[str, ScalarFunction | UserAggregate]:
    """The functions and aggregates of users that a graph calls, by name, as they are registered now."""
    called = frozenset().union(*(functions_of(einsum.join) for einsum in graph.einsums))
    aggregates = {str(einsum.aggregate) for einsum in graph.einsums} & USER_AGGREGATES.keys()
    pairs = {USER_AGGREGATES[name].pair for name in aggregates}
    return user_functions_named(called - pairs | aggregates)


def user_functions_named(names: Collection[str]) -> dict[str, ScalarFunction | UserAggregate]:
    """The functions and aggregates of users among those with some names, as they are registered now."""
    records = {name: user_function(name) for name in sorted(names)}
    return {
        name: record
        for name, record in records.items()
        if record is not None and (isinstance(record, UserAggregate) or record.python is not None)
    }


def user_function(name: str) -> ScalarFunction | UserAggregate | None:
    """The user's aggregate or the function `name`; None if there is neither."""
    return USER_AGGREGATES.get(name) or FUNCTIONS.get(name)
