"""Pipeline: a plan as one statement that fails if its transaction sees other data than the plan was made for.

The statement first compares the fingerprints of the tensors, as a run does. It is for DuckDB, which computes a
materialized common table expression even if the rest of the query does not need it.
"""

import sqlglot
from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.statistics.fingerprints import fingerprints, fingerprints_statement
from sparseeinsum.statistics.sql_templates import union_all
from sparseeinsum.storage.catalogue import Catalogue, fingerprint_of_definitions, fingerprint_of_dictionaries

_GUARD, _IS_SAME = "unchanged", "is_same"


def guarded_query(plan: ProgramPlan, output: str, engine: Engine) -> str:
    """The SELECT of one output, which fails where the tensors are not those that the plan was made for.

    Args:
        plan: Made in a transaction of the engine that is still open.
        output: One of its results.
        engine: The connection that it was made on.
    """
    query = plan.statements.single(output).query
    checks = [*_checks_of_data(plan, engine), *_checks_of_definitions(plan, engine)]
    if checks:
        counted = exp.select(exp.Count(this=exp.column(_IS_SAME))).from_(_GUARD).subquery()
        all_same = exp.EQ(this=counted, expression=exp.Literal.number(len(checks)))
        query = exp.select("*").from_(query.subquery("result")).where(all_same)
        query = query.with_(_GUARD, as_=union_all(checks), materialized=True)
    return write_sql(query, engine.dialect)


def _checks_of_data(plan: ProgramPlan, engine: Engine) -> list[exp.Select]:
    """For every tensor that is read, a query of one row that fails unless the rows are those that were measured."""
    checks = []
    read = {name: tensor.stored for name, tensor in plan.inputs.items() if not tensor.stored.is_generated}
    for (name, stored), fingerprint in zip(read.items(), fingerprints(list(read.values()), engine), strict=True):
        assert isinstance(fingerprint, tuple)
        now = sqlglot.parse_one(fingerprints_statement((stored,), engine.dialect_name), dialect=engine.dialect_name)
        assert isinstance(now, exp.Query)
        columns = [exp.column(column) for column in now.named_selects[1:]]
        same = [
            exp.NullSafeEQ(this=column, expression=exp.convert(then))
            for column, then in zip(columns, fingerprint, strict=True)
        ]
        checks.append(_check(exp.and_(*same), f"the rows of tensor {name} are", now))
    return checks


def _checks_of_definitions(plan: ProgramPlan, engine: Engine) -> list[exp.Select]:
    """Queries of one row that fail unless the catalogue says of tensors, and of their dictionaries, what it said."""
    names = sorted(Catalogue(engine).all().keys() & plan.inputs.keys())
    axes = [axis for tensor in plan.inputs.values() for axis in tensor.stored.tensor.axes]
    dictionaries = sorted({axis.dictionary.name for axis in axes if axis.dictionary is not None})
    checks = []
    if names:
        subject = f"the definitions of tensors ({', '.join(names)}) are"
        checks.append(_check_of_fingerprint(fingerprint_of_definitions(names), subject, engine))
    if dictionaries:
        subject = f"the dictionaries ({', '.join(dictionaries)}) are"
        checks.append(_check_of_fingerprint(fingerprint_of_dictionaries(dictionaries), subject, engine))
    return checks


def _check_of_fingerprint(now: exp.Select, subject: str, engine: Engine) -> exp.Select:
    ((then,),) = engine.rows(now)
    same = exp.EQ(this=exp.column(now.named_selects[0]), expression=exp.convert(then))
    return _check(same, subject, now)


def _check(same: exp.Expr, subject: str, now: exp.Query) -> exp.Select:
    message = (
        f"{subject} other ones in this transaction than those that others see, for which the plan was made; commit "
        "first, or roll back"
    )
    failure = exp.func("ERROR", exp.Literal.string(message))
    checked = exp.Case(ifs=[exp.If(this=same, true=exp.true())], default=failure)
    return exp.select(exp.alias_(checked, _IS_SAME)).from_(now.subquery("now"))
