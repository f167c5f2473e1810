"""Language: the functions and aggregates that users registered and an EinGraph calls, by name."""

from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.scalar import functions_of
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import Function
from sparseeinsum.operators.users_aggregates import USERS_AGGREGATES, UsersAggregate


def registered_in(graph: EinGraph) -> dict[str, Function | UsersAggregate]:
    """Those that there are now."""
    called = frozenset().union(*(functions_of(einsum.join) for einsum in graph.einsums))
    aggregates = {str(einsum.aggregate) for einsum in graph.einsums} & USERS_AGGREGATES.keys()
    pairs = {USERS_AGGREGATES[name].pair for name in aggregates}
    functions = {name for name in called - pairs if FUNCTIONS[name].python is not None}
    found = {name: registered(name) for name in sorted(functions | aggregates)}
    return {name: record for name, record in found.items() if record is not None}


def registered(name: str) -> Function | UsersAggregate | None:
    """The aggregate of a user, or the function, of a name."""
    return USERS_AGGREGATES.get(name) or FUNCTIONS.get(name)
