"""Plans: plans without arrays as SQL of other engines, which have no functions of this package."""

import difflib
from collections.abc import Iterator
from dataclasses import replace

from sparseeinsum.algebra.operators import AllKeys, Computed, Contract, Densify, Relation, Stored
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.errors import PlanError
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.plan_statements import write_statements
from sparseeinsum.render.dialects import CITUS, DUCKDB, POSTGRESQL, Dialect
from sparseeinsum.render.plain_sql.dialect_spelling import Spelling
from sparseeinsum.render.plain_sql.engines import OTHER_DIALECTS
from sparseeinsum.render.sql_statement import SqlStatement

_OWN_DIALECTS = {name for dialect in (DUCKDB, POSTGRESQL, CITUS) for name in (dialect.name, *dialect.aliases)}


def requested_dialect(own: Dialect, name: str | None) -> Dialect:
    """The dialect in which a user asks for the SQL of a plan, by its name.

    Args:
        own: The dialect of the plan's database.
        name: The name; None for the plan's own.

    Raises:
        PlanError: There is no dialect of that name, or the package runs on its engine, and the plan is not for it.
    """
    if name is None or name.lower() in (own.name, *own.aliases):
        return own
    if name.lower() in _OWN_DIALECTS:
        raise PlanError(
            f"the plan reads tables of a database whose dialect is {own.name}; for SQL in {name}, "
            "make the plan on such a database"
        )
    if name.lower() not in OTHER_DIALECTS:
        close = difflib.get_close_matches(name.lower(), OTHER_DIALECTS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(OTHER_DIALECTS)}"
        raise PlanError(f"there is no dialect {name!r}; {hint}")
    return OTHER_DIALECTS[name.lower()]


def plain_sql(plan: ProgramPlan, dialect: Dialect) -> str:
    """The SQL text of a plan for another engine; see `plain_statements`."""
    return write_statements(plain_statements(plan, dialect))


def plain_statements(plan: ProgramPlan, dialect: Dialect) -> tuple[SqlStatement, ...]:
    """The statements of a plan for another engine, one for every output, which return natural keys.

    Args:
        plan: A plan without arrays.
        dialect: The dialect of the engine.

    Raises:
        PlanError: The plan has arrays, or the engine cannot compute what it computes.
    """
    assert dialect.plain is not None
    for definition in plan.definitions:
        _check_contract(definition.relation, dialect.plain)
    for name in plan.outputs:
        _check_layout(delivered_relation(plan.decomposed, name))
    own = replace(plan.statements, dialect=replace(dialect, names_in=plan.dialect.name))
    statements = own.for_any_data()
    return tuple(map(statements.with_natural_keys, statements.one_per_output()))


def _check_contract(contract: Contract, spelling: Spelling) -> None:
    """Refuse an EinSum that no SQL without functions of this package computes."""
    einsum = contract.einsum
    if einsum.aggregate in USER_AGGREGATES:
        raise PlanError(f"{einsum.output.tensor}: {einsum.aggregate} is an aggregate of yours, which only kernels have")
    if is_complex(contract.computed_in):
        raise PlanError(
            f"{einsum.output.tensor} is computed with complex numbers, which {spelling.engine} does not have; compute "
            "with two tensors, of real and of imaginary parts"
        )
    for relation in _relations(contract):
        tensor = relation.schema.tensor
        if tensor.dtype == "float32" and not spelling.has_float32:
            raise PlanError(
                f"{tensor.name} is float32, which {spelling.engine} does not have; store its inputs as float64"
            )
        _check_layout(relation)


def _check_layout(relation: Relation) -> None:
    """Refuse a relation with arrays, and say where they come from."""
    if relation.schema.is_scalar:
        return
    name = relation.schema.tensor.name
    if isinstance(relation, Stored):
        promoted = {axis.name: 1 for axis in relation.schema.tensor.axes}
        raise PlanError(
            f"{name} is stored as arrays, which other engines do not have; store it with one row for each entry, by "
            f"db.tensor({name!r}, ..., promoted={promoted})"
        )
    raise PlanError(
        f"the plan computes {name} in arrays, which other engines do not have; plan with optimizer='relational' "
        "(--optimizer relational). Scans such as cumsum, picks such as first, and functions of yours always need arrays"
    )


def _relations(relation: Relation) -> Iterator[Relation]:
    """A relation and all that it reads, down to stored tensors and results of other EinSums; what is read first."""
    match relation:
        case Contract(inputs=inputs):
            for operand in inputs:
                yield from _relations(operand)
        case Stored() | Computed() | AllKeys():
            pass
        case Densify(input=only, all_keys=all_keys):
            yield from _relations(only)
            if all_keys is not None:
                yield from _relations(all_keys)
        case _:
            yield from _relations(relation.input)
    yield relation
