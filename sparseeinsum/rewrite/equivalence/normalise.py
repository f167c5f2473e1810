"""Rewriting: computes the normal forms of the results of a program (SPORES, section 2.3).

+, *, - and sums become sums of monomials. So do quotients by one product, powers with small integer exponents, exp of a
sum, sign, relu and logsumexp, by their definition for real numbers. Everything else becomes an atom.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.eingraph import SELECT, EinSum, Program, Reference
from sparseeinsum.language.generated import GeneratedTensor
from sparseeinsum.operators.expressions import AxisBound, Bound, Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.equivalence.axis_groups import AxisGroups, scoped_name
from sparseeinsum.rewrite.equivalence.isomorphism import combine_like_terms
from sparseeinsum.rewrite.equivalence.normal_form import (
    ONLY_INDEX,
    AggregateAtom,
    Atom,
    BoundAtom,
    FreshLabels,
    FunctionAtom,
    Monomial,
    Polynomial,
    TensorAtom,
    add_all,
    atom,
    constant,
    labels_of,
    multiply,
    power,
    rename_labels,
    scale,
    sum_over,
)
from sparseeinsum.rewrite.polynomials import as_fraction

_MOST_POWER = 16


@dataclass(frozen=True, slots=True)
class Normaliser:
    """Computes normal forms of one of several programs that are compared.

    Attributes:
        program: The program.
        number: The number of the program.
        groups: Groups of the axes of all programs that share a bound.
    """

    program: Program
    number: int
    groups: AxisGroups
    _fresh: FreshLabels = field(default_factory=FreshLabels)
    _results: dict[str, Polynomial] = field(default_factory=dict)

    def normal_forms(self) -> Mapping[str, Polynomial]:
        """The normal form of every result by name; its axes have the labels 0, 1 and so on."""
        for einsum in self.program.einsums:
            self._results[einsum.output.tensor] = self._result(einsum)
        return self._results

    def _result(self, einsum: EinSum) -> Polynomial:
        if not einsum.is_rewritable:
            reason = "reads shifted or fixed indices" if einsum.aggregate == SELECT else f"is {einsum.aggregate}"
            problem = f"{einsum.output.tensor} {reason}, for which no rules are known"
            raise SemanticsError(f"{problem}; compute both sides")
        body = self._normal_form(einsum.join, einsum)
        if einsum.aggregate is not None:
            body = self._aggregated(einsum.aggregate, body, einsum)
        axes = {label: str(axis) for axis, label in enumerate(einsum.output.labels)}
        return rename_labels(body, axes, self._fresh)

    def _bound(self, label: str, einsum: EinSum) -> Atom | Fraction:
        reference = next(reference for reference in (*einsum.operands, einsum.output) if label in reference.labels)
        return self._bound_of((scoped_name(reference.tensor, self.number, self.program), reference.labels.index(label)))

    def _bound_of(self, position: tuple[str, int]) -> Atom | Fraction:
        bound = self.groups.bound(position)
        return BoundAtom(self.groups.representative(position)) if bound is None else Fraction(bound)

    def _reference(self, reference: Reference) -> Polynomial:
        generated = {tensor.name: tensor for tensor in self.program.generated}
        if reference.tensor in self._results:
            names = {str(axis): label for axis, label in enumerate(reference.labels)}
            return rename_labels(self._results[reference.tensor], names, self._fresh)
        name = reference.tensor
        if name in generated:
            vector = generated[name]
            assert isinstance(vector, GeneratedTensor), "EinSums that read index maps are refused"
            if vector.kind == "ones":
                return constant(1)
            name = "index()"
        return atom(TensorAtom(name, tuple(self._label(reference, axis) for axis in range(len(reference.labels)))))

    def _label(self, reference: Reference, axis: int) -> str:
        position = scoped_name(reference.tensor, self.number, self.program), axis
        return ONLY_INDEX if self.groups.bound(position) == 1 else reference.labels[axis]

    def _aggregated(self, aggregate: str, body: Polynomial, einsum: EinSum) -> Polynomial:
        """The normal form of the aggregate of `body` over the labels that the result of `einsum` lacks."""
        bounds = {label: self._bound(label, einsum) for label in einsum.aggregated}
        if aggregate == "sum":
            return sum_over(body, bounds, self._fresh)
        if aggregate == "logsumexp":
            return atom(FunctionAtom("log", (sum_over(self._exponential(body), bounds, self._fresh),)))
        labels = frozenset(bounds) & labels_of(body)
        absent_bounds = [bounds[label] for label in bounds.keys() - labels if bounds[label] != 1]
        if absent_bounds:
            numbers = [constant(bound) if isinstance(bound, Fraction) else atom(bound) for bound in absent_bounds]
            body = atom(FunctionAtom("over", (body, *numbers)))
        return atom(AggregateAtom(aggregate, labels, body)) if labels or absent_bounds else body

    def _normal_form(self, expression: Scalar, einsum: EinSum) -> Polynomial:
        match expression:
            case Operand(index):
                return self._reference(einsum.operands[index])
            case Literal(value):
                number = as_fraction(value)
                return atom(FunctionAtom(repr(value), ())) if number is None else constant(number)
            case Bound(label):
                return _number(self._bound(label, einsum))
            case AxisBound(tensor, axis):
                return _number(self._bound_of((scoped_name(tensor, self.number, self.program), axis)))
            case Call(function, arguments):
                return self._call_form(function, [self._normal_form(argument, einsum) for argument in arguments])

    def _call_form(self, function: str, arguments: list[Polynomial]) -> Polynomial:
        match function, arguments:
            case "add" | "sub" | "neg", _:
                signs = {"add": (1, 1), "sub": (1, -1), "neg": (-1,)}[function]
                return add_all(scale(argument, Fraction(sign)) for argument, sign in zip(arguments, signs, strict=True))
            case "mul", [first, second]:
                return multiply(first, second, self._fresh)
            case "div", [first, second]:
                return multiply(first, self._reciprocal(second), self._fresh)
            case "pow", [base, exponent]:
                return self._power(base, exponent)
            case "exp", [argument]:
                return self._exponential(argument)
            case _:
                return _by_definition(function, arguments)

    def _power(self, base: Polynomial, exponent: Polynomial) -> Polynomial:
        number = _constant_of(exponent)
        if number is None or number.denominator != 1 or abs(number) > _MOST_POWER:
            return atom(FunctionAtom("pow", (base, exponent)))
        result = power(base, abs(int(number)), self._fresh)
        return self._reciprocal(result) if number < 0 else result

    def _reciprocal(self, divisor: Polynomial) -> Polynomial:
        """1 / divisor; the reciprocal of a product is the product of the reciprocals of its factors."""
        divisor = combine_like_terms(divisor, {})
        if len(divisor.monomials) != 1 or divisor.monomials[0].bound:
            return atom(FunctionAtom("reciprocal", (divisor,)))
        (monomial,) = divisor.monomials
        factors = tuple(_reciprocal_power(factor, exponent) for factor, exponent in monomial.powers)
        return Polynomial((Monomial(1 / monomial.coefficient, frozenset(), factors),))

    def _exponential(self, exponent: Polynomial) -> Polynomial:
        """Exp of a sum as a product of exps of its terms; integer multiples become powers, which can cancel."""
        result = constant(1)
        for monomial in combine_like_terms(exponent, {}).monomials:
            is_integer = monomial.coefficient.denominator == 1 and abs(monomial.coefficient) <= _MOST_POWER
            count = int(monomial.coefficient) if is_integer and monomial.powers else 1
            inner = Monomial(monomial.coefficient / count, monomial.bound, monomial.powers)
            factor = ((FunctionAtom("exp", (Polynomial((inner,)),)), count),)
            result = multiply(result, Polynomial((Monomial(Fraction(1), frozenset(), factor),)), self._fresh)
        return result


def _reciprocal_power(factor: Atom, exponent: int) -> tuple[Atom, int]:
    """1 / x^n as an atom and its power; exp(x) gets a negative power, because it is never 0."""
    if isinstance(factor, FunctionAtom) and factor.function == "exp":
        return factor, -exponent
    return FunctionAtom("reciprocal", (atom(factor),)), exponent


def _number(bound: Atom | Fraction) -> Polynomial:
    return constant(bound) if isinstance(bound, Fraction) else atom(bound)


def _by_definition(function: str, arguments: list[Polynomial]) -> Polynomial:
    """A function of normal forms, which is replaced by its definition where it has one in other functions."""
    zero = constant(0)
    match function, arguments:
        case "sign", [argument]:
            positive, negative = (atom(FunctionAtom("gt", pair)) for pair in ((argument, zero), (zero, argument)))
            return add_all((positive, scale(negative, Fraction(-1))))
        case "relu", [argument]:
            return atom(FunctionAtom("max", (argument, zero)))
        case "lt" | "le", [first, second]:
            return atom(FunctionAtom({"lt": "gt", "le": "ge"}[function], (second, first)))
        case _:
            return atom(FunctionAtom(function, tuple(arguments)))


def _constant_of(polynomial: Polynomial) -> Fraction | None:
    """The number that a normal form equals; None if it is not constant."""
    monomials = combine_like_terms(polynomial, {}).monomials
    if any(monomial.powers for monomial in monomials):
        return None
    return sum((monomial.coefficient for monomial in monomials), Fraction(0))
