"""Saturation: writes terms as text in the notation of programs."""

from sparseeinsum.language.eingraph import write_reference
from sparseeinsum.language.scalar import write
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.saturation.einsum_building import as_call
from sparseeinsum.rewrite.saturation.terms import Add, AggregateTerm, Apply, Leaf, Mul, NumberTerm, Sum, Term


def write_term(term: Term) -> str:
    """A term as text, every aggregate with the labels that it binds."""
    leaves: list[str] = []
    return write(_scalar(term, leaves), leaves)


def _scalar(term: Term, leaves: list[str]) -> Scalar:
    match term:
        case NumberTerm(value):
            return Literal(int(value) if value.is_integer() else value)
        case Add() | Mul() | Apply():
            function, arguments = as_call(term)
            return Call(function, tuple(_scalar(argument, leaves) for argument in arguments))
        case Leaf(reference):
            leaves.append(write_reference(reference))
        case Sum() | AggregateTerm():
            leaves.append(_write_aggregate(term))
    return Operand(len(leaves) - 1)


def _write_aggregate(term: Sum | AggregateTerm) -> str:
    """An aggregate as text; directly nested aggregates of one kind become one with several labels."""
    aggregate = _aggregate_of(term)
    labels: list[str] = []
    body: Term = term
    while isinstance(body, Sum | AggregateTerm) and _aggregate_of(body) == aggregate:
        labels.append(body.label)
        body = body.body
    return f"{aggregate}[{', '.join(labels)}]({write_term(body)})"


def _aggregate_of(term: Sum | AggregateTerm) -> str:
    return "sum" if isinstance(term, Sum) else term.aggregate
