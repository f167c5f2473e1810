"""Rewriting: EinSums of a program in, the normal forms of its results out (SPORES, section 2.3).

+, *, - and sums become sums of monomials; so do quotients by one product, powers with small whole exponents, exp of a
sum, sign, relu and logsumexp, by what they mean for real numbers. All else is an atom.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.eingraph import EinSum, Program, Reference
from sparseeinsum.operators.expressions import AxisBound, Bound, Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.equivalence.axis_groups import AxisGroups, scoped
from sparseeinsum.rewrite.equivalence.isomorphism import reduced
from sparseeinsum.rewrite.equivalence.normal_form import (
    ONLY_INDEX,
    Applied,
    Atom,
    Entry,
    Extent,
    Folded,
    FreshLabels,
    Monomial,
    Polynomial,
    atom,
    constant,
    labels_of,
    power,
    product,
    renamed,
    scaled,
    summed,
    total,
)
from sparseeinsum.rewrite.polynomials import as_fraction

_MOST_POWER = 16


@dataclass(frozen=True, slots=True)
class Normaliser:
    """Takes the results of one of several programs apart.

    Attributes:
        program: Whose.
        number: Of the program among those that are compared.
        groups: Axes of all of them that share a bound.
        zeros: Inputs that hold nothing but 0.
    """

    program: Program
    number: int
    groups: AxisGroups
    zeros: frozenset[str] = frozenset()
    _fresh: FreshLabels = field(default_factory=FreshLabels)
    _results: dict[str, Polynomial] = field(default_factory=dict)

    def read(self) -> Mapping[str, Polynomial]:
        """The normal form of every result, its axes under the labels 0, 1, ... in order."""
        for einsum in self.program.einsums:
            self._results[einsum.output.tensor] = self._result(einsum)
        return self._results

    def _result(self, einsum: EinSum) -> Polynomial:
        body = self._form(einsum.join, einsum)
        if not einsum.is_rewritable:
            problem = f"{einsum.output.tensor} is {einsum.aggregate}, which no equation here is of"
            raise SemanticsError(f"{problem}; compute both sides")
        if einsum.aggregate is not None:
            body = self._aggregated(einsum.aggregate, body, einsum)
        axes = {label: str(axis) for axis, label in enumerate(einsum.output.labels)}
        return renamed(body, axes, self._fresh)

    def _extent(self, label: str, einsum: EinSum) -> Atom | Fraction:
        reference = next(each for each in (*einsum.operands, einsum.output) if label in each.labels)
        return self._extent_of((scoped(reference.tensor, self.number, self.program), reference.labels.index(label)))

    def _extent_of(self, place: tuple[str, int]) -> Atom | Fraction:
        bound = self.groups.bound(place)
        return Extent(self.groups.top(place)) if bound is None else Fraction(bound)

    def _reference(self, reference: Reference) -> Polynomial:
        generated = {each.name: each for each in self.program.generated}
        if reference.tensor in self._results:
            names = {str(axis): label for axis, label in enumerate(reference.labels)}
            return renamed(self._results[reference.tensor], names, self._fresh)
        if reference.tensor in self.zeros:
            return constant(0)
        name = reference.tensor
        if name in generated:
            if generated[name].kind == "ones":
                return constant(1)
            name = "index()"
        return atom(Entry(name, tuple(self._label(reference, axis) for axis in range(len(reference.labels)))))

    def _label(self, reference: Reference, axis: int) -> str:
        place = scoped(reference.tensor, self.number, self.program), axis
        return ONLY_INDEX if self.groups.bound(place) == 1 else reference.labels[axis]

    def _aggregated(self, aggregate: str, body: Polynomial, einsum: EinSum) -> Polynomial:
        extents = {label: self._extent(label, einsum) for label in einsum.aggregated}
        if aggregate == "sum":
            return summed(body, extents, self._fresh)
        if aggregate == "logsumexp":
            return atom(Applied("log", (summed(self._exponential(body), extents, self._fresh),)))
        labels = frozenset(extents) & labels_of(body)
        absent = [extents[label] for label in extents.keys() - labels if extents[label] != 1]
        if absent:
            numbers = [constant(each) if isinstance(each, Fraction) else atom(each) for each in absent]
            body = atom(Applied("over", (body, *numbers)))
        return atom(Folded(aggregate, labels, body)) if labels or absent else body

    def _form(self, expression: Scalar, einsum: EinSum) -> Polynomial:
        match expression:
            case Operand(index):
                return self._reference(einsum.operands[index])
            case Literal(value):
                number = as_fraction(value)
                return atom(Applied(repr(value), ())) if number is None else constant(number)
            case Bound(label):
                return _number(self._extent(label, einsum))
            case AxisBound(tensor, axis):
                return _number(self._extent_of((scoped(tensor, self.number, self.program), axis)))
            case Call(function, arguments):
                return self._called(function, [self._form(argument, einsum) for argument in arguments])

    def _called(self, function: str, arguments: list[Polynomial]) -> Polynomial:
        match function, arguments:
            case "add" | "sub" | "neg", _:
                signs = {"add": (1, 1), "sub": (1, -1), "neg": (-1,)}[function]
                return total(scaled(each, Fraction(sign)) for each, sign in zip(arguments, signs, strict=True))
            case "mul", [first, second]:
                return product(first, second, self._fresh)
            case "div", [first, second]:
                return product(first, self._reciprocal(second), self._fresh)
            case "pow", [base, exponent]:
                return self._power(base, exponent)
            case "exp", [only]:
                return self._exponential(only)
            case _:
                return _as_defined(function, arguments)

    def _power(self, base: Polynomial, exponent: Polynomial) -> Polynomial:
        number = _constant_of(exponent)
        if number is None or number.denominator != 1 or abs(number) > _MOST_POWER:
            return atom(Applied("pow", (base, exponent)))
        result = power(base, abs(int(number)), self._fresh)
        return self._reciprocal(result) if number < 0 else result

    def _reciprocal(self, divisor: Polynomial) -> Polynomial:
        """1 / divisor; that of a product is the product of those of its factors."""
        divisor = reduced(divisor, {})
        if len(divisor.monomials) != 1 or divisor.monomials[0].bound:
            return atom(Applied("reciprocal", (divisor,)))
        (monomial,) = divisor.monomials
        factors = tuple(_reciprocal_power(each, exponent) for each, exponent in monomial.powers)
        return Polynomial((Monomial(1 / monomial.coefficient, frozenset(), factors),))

    def _exponential(self, exponent: Polynomial) -> Polynomial:
        """Exp of a sum as the product of those of its terms, whole multiples as powers, which cancel."""
        result = constant(1)
        for monomial in reduced(exponent, {}).monomials:
            whole = monomial.coefficient.denominator == 1 and abs(monomial.coefficient) <= _MOST_POWER
            count = int(monomial.coefficient) if whole and monomial.powers else 1
            inner = Monomial(monomial.coefficient / count, monomial.bound, monomial.powers)
            factor = ((Applied("exp", (Polynomial((inner,)),)), count),)
            result = product(result, Polynomial((Monomial(Fraction(1), frozenset(), factor),)), self._fresh)
        return result


def _reciprocal_power(of: Atom, exponent: int) -> tuple[Atom, int]:
    """1 / x^n; exp(x), which is never 0, has negative powers."""
    if isinstance(of, Applied) and of.function == "exp":
        return of, -exponent
    return Applied("reciprocal", (atom(of),)), exponent


def _number(extent: Atom | Fraction) -> Polynomial:
    return constant(extent) if isinstance(extent, Fraction) else atom(extent)


def _as_defined(function: str, arguments: list[Polynomial]) -> Polynomial:
    """A function of normal forms, by those that define it where others do."""
    zero = constant(0)
    match function, arguments:
        case "sign", [only]:
            positive, negative = (atom(Applied("gt", pair)) for pair in ((only, zero), (zero, only)))
            return total((positive, scaled(negative, Fraction(-1))))
        case "relu", [only]:
            return atom(Applied("max", (only, zero)))
        case "lt" | "le", [first, second]:
            return atom(Applied({"lt": "gt", "le": "ge"}[function], (second, first)))
        case _:
            return atom(Applied(function, tuple(arguments)))


def _constant_of(polynomial: Polynomial) -> Fraction | None:
    """The number that a normal form is; None for others."""
    monomials = reduced(polynomial, {}).monomials
    if any(monomial.powers for monomial in monomials):
        return None
    return sum((monomial.coefficient for monomial in monomials), Fraction(0))
