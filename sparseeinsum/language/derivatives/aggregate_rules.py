"""Derivatives: the rules in the records of aggregates, for the one or two values that they take of every index."""

from dataclasses import dataclass

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.derivatives.rules import is_zero, read_rule, substituted
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Scalar
from sparseeinsum.operators.records import AggregateFunction
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES


@dataclass(frozen=True, slots=True)
class AggregatedValue:
    """A value that an aggregate takes at every index.

    Attributes:
        term: The expression of the value.
        rule: What a small change g of it adds to the result, as program text; None if nothing is aggregated.
        names: The names in the rule, besides g: those of all values, of the result, and of the counts.
    """

    term: Scalar
    rule: str | None
    names: tuple[str, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether small changes of the value change nothing."""
        return bool(self.rule) and is_zero(read_rule(str(self.rule), (*self.names, "g")))


def aggregated_values(aggregate: str | None, join: Scalar) -> tuple[AggregatedValue, ...]:
    """The values that an aggregate takes: that of the join, or of both arguments of an aggregate of pairs.

    Args:
        aggregate: The aggregate of an EinSum; a scan, a pick or a selection is one of what it reads.
        join: The join of the EinSum.
    """
    if aggregate in USER_AGGREGATES:
        record = USER_AGGREGATES[aggregate]
        terms = join.arguments if isinstance(join, Call) and join.function == record.pair else (join,)
        rules = record.derivatives or ("",) * len(terms)
        return tuple(AggregatedValue(term, rule, record.operands) for term, rule in zip(terms, rules, strict=True))
    if aggregate not in AGGREGATES:
        return (AggregatedValue(join, None),)
    counts = tuple(name for name, _, _ in AGGREGATES[aggregate].counts)
    return (AggregatedValue(join, AGGREGATES[aggregate].derivative, ("u", "v", *counts)),)


def check_differentiable(aggregate: str, join: Scalar) -> None:
    """Refuse an aggregate without a derivative, or one that was differentiated as often as its rule allows."""
    if aggregate in USER_AGGREGATES:
        if USER_AGGREGATES[aggregate].derivatives is None:
            hint = "register it with derivatives, or write stop_gradient(...) around it"
            raise SemanticsError(f"the aggregate {aggregate} of a user has no derivative; {hint}")
        return
    record = AGGREGATES[aggregate]
    if not record.derivative:
        hint = "stop_gradient(...) around it makes it a constant"
        raise SemanticsError(f"the aggregate {record.name} has no derivative; {hint}")
    if record.most_derivatives and _times_differentiated(join, record) >= record.most_derivatives:
        raise SemanticsError(f"the aggregate {record.name} has no more than {record.most_derivatives} derivatives")


def _times_differentiated(join: Scalar, record: AggregateFunction) -> int:
    """How often an aggregate of `join` was differentiated already: its terms are those of a count of the same kind."""
    rules = [read_rule(text, ("u", "v")) for _, aggregate, text in record.counts if aggregate == record.name]
    arguments = join.arguments if isinstance(join, Call) else ()
    is_count = [argument for argument in arguments for rule in rules if substituted(rule, (argument,)) == join]
    return 1 + max(_times_differentiated(argument, record) for argument in is_count) if is_count else 0
