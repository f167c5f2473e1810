"""Language: lowers references with indices that are no mere labels, such as A[i + 1, 0], to EinSums that select.

Each of them reads one axis at an affine index, by an index map. A label ranges over all indices for which its
references exist. But a reference with the mere label fixes its bound, unless its tensor is also read at a shifted index
of this label: Y[i] = A[i + 1] - A[i] has one index less than A; in Y[i] = A[i + 1] * B[i] the bound is that of B.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparseeinsum.errors import ParseError
from sparseeinsum.language.affine_indices import AffineIndex, Limit, bounding_limits, relevant_limits, with_labels
from sparseeinsum.language.eingraph import SELECT, EinSum, Promoted, Reference
from sparseeinsum.language.index_maps import IndexMap
from sparseeinsum.language.label_bounds import STATEMENT, Scopes, declared_bounds, scopes_inside
from sparseeinsum.language.names import ProgramNames
from sparseeinsum.language.syntax import (
    Assignment,
    BoundExpression,
    ExpressionTree,
    FunctionCall,
    IndexedReference,
    Position,
    RangeExpression,
    TensorReference,
    lowercase_labels,
    references,
    written_labels,
)
from sparseeinsum.language.syntax_text import write_expression
from sparseeinsum.operators.expressions import AxisBound, Call, Literal, Operand

# The value where the map, operand 0, is true; then all but one of the values that are aggregated are 0.
SELECTED = Call("where", (Operand(0), Operand(1), Literal(0)))

_SCOPE = "@"  # between a label and its scope

_Indices = Sequence[str | AffineIndex]


def select_indices(
    assignment: Assignment, names: ProgramNames, promoted_among: Callable[[frozenset[str]], Promoted]
) -> tuple[ExpressionTree | None, list[EinSum]]:
    """The value of an assignment with plain references to results of EinSums that select, and these EinSums.

    The value is None if the last of these EinSums computes the target.

    Args:
        assignment: The assignment.
        names: The names of the program; those of the EinSums and their index maps are added.
        promoted_among: The labels that the user promoted, among some labels.

    Raises:
        ParseError: Nothing bounds a label.
    """
    is_plain = not any(isinstance(reference, IndexedReference) for reference in references(assignment.value))
    if is_plain and not assignment.limits:
        return assignment.value, []
    return _Selecting(assignment, names, promoted_among).selected()


@dataclass
class _Selecting:
    """Selects the indices of one assignment.

    Labels in limits have names that differ between their scopes, see `_scoped`.

    Attributes:
        assignment: The assignment.
        names: The names of the program.
        promoted_among: The labels that the user promoted, among some labels.
        einsums: The EinSums so far.
        clause: The limits after the statement, for every scope.
        limited: The labels in these.
        shifted: The tensors that are read at indices with a label, and these labels.
        limits: All that bounds labels: first the clause and the declaration of the target, then references.
        bounding: Those of them that bound each label; none while limits of references are collected.
    """

    assignment: Assignment
    names: ProgramNames
    promoted_among: Callable[[frozenset[str]], Promoted]
    einsums: list[EinSum] = field(default_factory=list)
    clause: tuple[Limit, ...] = ()
    limited: frozenset[str] = frozenset()
    shifted: frozenset[tuple[str, str]] = frozenset()
    limits: tuple[Limit, ...] = ()
    bounding: Mapping[str, tuple[Limit, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        target = self.assignment.target
        for label, at in (*written_labels(target), *written_labels(self.assignment.value)):
            if self.names.is_parameter(label):
                problem = f"{label} is a parameter and a label of this statement, which shifts indices"
                raise self.names.error(f"{problem}; rename the label", at)
        self.clause = tuple(dict.fromkeys(self._limits_of_clause()))
        declared = declared_bounds(target, self.names.declared.get(target.tensor))
        self.limited = frozenset(label for limit in self.clause for label in limit.labels)
        self.shifted = frozenset(self._shifted(self.assignment.value, {}))
        self.limits = (
            *self.clause,
            *(Limit(label, bound) for label, _, bound in declared),
            *self._limits_in(self.assignment.value, {}),
        )
        self.bounding = bounding_limits(self.limits)

    def selected(self) -> tuple[ExpressionTree | None, list[EinSum]]:
        """The value with plain references, and the EinSums; no value if they compute the target."""
        value, target = self.assignment.value, self.assignment.target
        if isinstance(value, TensorReference | IndexedReference):
            indices = self._indices(value, {})
            if any(isinstance(index, AffineIndex) for index in indices) and set(_labels(indices)) == set(
                lowercase_labels(target.labels)
            ):
                self._select(value, indices, {}, Reference(target.tensor, lowercase_labels(target.labels)))
                return None, self.einsums
        return self._replaced(value, {}), self.einsums

    def _replaced(self, expression: ExpressionTree, scopes: Scopes) -> ExpressionTree:
        """The expression with references to selected tensors; `scopes` are those of the labels around it."""
        match expression:
            case TensorReference() | IndexedReference():
                indices = self._indices(expression, scopes)
                if all(isinstance(index, str) for index in indices):
                    return expression
                return self._select(expression, indices, scopes)
            case FunctionCall(_, _, arguments):
                inner = scopes_inside(expression, scopes)
                return replace(expression, arguments=tuple(self._replaced(argument, inner) for argument in arguments))
            case RangeExpression(_, label, None, at):
                return replace(expression, bound=self._bound_in_clause(_scoped(label.lower(), scopes), at))
            case _:
                return expression

    def _bound_in_clause(self, name: str, at: Position) -> int | BoundExpression | None:
        """The bound that the clause gives a label; None if there is none."""
        bound = next((limit.bound for limit in self.clause if limit.index == name), None)
        return BoundExpression(bound.tensor, bound.axis, at=at) if isinstance(bound, AxisBound) else bound

    def _limits_of_clause(self) -> Iterator[Limit]:
        """The limits after the statement, for every scope of their labels; refuses those that bound none."""
        target, limits = self.assignment.target, self.assignment.limits
        labels = {label.lower() for label, _ in (*written_labels(target), *written_labels(self.assignment.value))}
        used = labels.union(*(limit.labels for limit in limits if labels & set(limit.labels)))
        for limit in limits:
            if used.isdisjoint(limit.labels):
                problem = f"the statement has no label {limit.labels[0]}, which `for {limit.index} < ...` bounds"
                raise self.names.error(problem, target.at)
            yield limit
        for scopes in _scopes_in(self.assignment.value, {}):
            for limit in limits:
                yield Limit(_in_scopes(limit.index, scopes), limit.bound)

    def _shifted(self, expression: ExpressionTree, scopes: Scopes) -> Iterator[tuple[str, str]]:
        """The tensors that are read at indices with a label, and these labels in their scopes."""
        match expression:
            case IndexedReference(tensor, indices):
                for index in indices:
                    if isinstance(index, AffineIndex):
                        yield from ((tensor, _scoped(label.lower(), scopes)) for label in index.labels)
            case FunctionCall(_, _, arguments):
                inner = scopes_inside(expression, scopes)
                for argument in arguments:
                    yield from self._shifted(argument, inner)

    def _indices(self, reference: TensorReference | IndexedReference, scopes: Scopes) -> _Indices:
        """The indices in lower case: affine ones also for labels that do not range over the whole axis."""
        indices: list[str | AffineIndex] = []
        for axis, index in enumerate(reference.indices):
            if isinstance(index, AffineIndex):
                indices.append(index.lowercase())
                continue
            label = index.lower()
            name = _scoped(label, scopes)
            bound = AxisBound(reference.tensor, axis)
            by_index = {Limit(AffineIndex.of_label(name), bound)}
            is_whole = Limit(name, bound) in self.clause or set(self.bounding.get(name, ())) == by_index
            is_part = name in self.limited or (reference.tensor, name) in self.shifted
            indices.append(AffineIndex.of_label(label) if is_part and not is_whole else label)
        return indices

    def _limits_in(self, expression: ExpressionTree, scopes: Scopes) -> Iterator[Limit]:
        """What bounds labels in an expression."""
        match expression:
            case TensorReference(tensor) | IndexedReference(tensor):
                for axis, index in enumerate(self._indices(expression, scopes)):
                    if isinstance(index, str) or index.terms:
                        yield Limit(_in_scopes(index, scopes), AxisBound(tensor, axis))
            case RangeExpression(_, label, int(bound)):
                yield Limit(_scoped(label.lower(), scopes), bound)
            case RangeExpression(_, label, BoundExpression(tensor, int(axis))):
                yield Limit(_scoped(label.lower(), scopes), AxisBound(tensor, axis))
            case FunctionCall(_, _, arguments):
                inner = scopes_inside(expression, scopes)
                for argument in arguments:
                    yield from self._limits_in(argument, inner)

    def _select(
        self,
        reference: TensorReference | IndexedReference,
        indices: _Indices,
        scopes: Scopes,
        output: Reference | None = None,
    ) -> TensorReference:
        """A reference to the tensor that EinSums select, one for every index that is no label.

        Args:
            reference: The reference as it is written.
            indices: Its indices.
            scopes: The scopes of the labels around it.
            output: What the last EinSum computes, if that is given.
        """
        self.names.check_read(reference.tensor, reference.at, self.assignment.target.tensor)
        placeholders = _placeholders(indices)
        slots: list[tuple[str, ...]] = [
            (index,) if isinstance(index, str) else (placeholders[axis],) for axis, index in enumerate(indices)
        ]
        steps = [(axis, index) for axis, index in enumerate(indices) if isinstance(index, AffineIndex)]
        steps.sort(key=lambda step: len(step[1].labels))  # first those after which the tensor is smallest
        current = Reference(reference.tensor, tuple(label for slot in slots for label in slot))
        for axis, index in steps:
            position = current.labels.index(placeholders[axis])
            indexed = AxisBound(current.tensor, position)
            label = _new_label(
                f"axis{position}", (*current.labels[:position], *current.labels[position + 1 :], *index.labels)
            )
            current = Reference(current.tensor, (*current.labels[:position], label, *current.labels[position + 1 :]))
            origin = AxisBound(reference.tensor, axis)
            limits = self._limits_of(index, origin, current, scopes, indexed)
            if not set(index.labels) <= {label for limit in limits for label in limit.labels}:
                raise self._unbounded(reference, index)
            slots[axis] = index.labels
            index_map = self.names.index_map(index, indexed, label, limits, origin, self.assignment.target.tensor)
            is_last = axis == steps[-1][0]
            labels = tuple(dict.fromkeys(label for slot in slots for label in slot))
            name = f"{self.assignment.target.tensor}_{reference.tensor}"
            current = self._add(index_map, current, labels, output if is_last else None, name)
        return TensorReference(current.tensor, current.labels, at=reference.at)

    def _limits_of(
        self, index: AffineIndex, origin: AxisBound, read: Reference, scopes: Scopes, indexed: AxisBound
    ) -> tuple[Limit, ...]:
        """What bounds the labels of an index; none if nothing does.

        Args:
            index: The index.
            origin: The axis that it reads in the statement.
            read: The tensor that it selects from, which may have a label of the index; then that is its bound.
            scopes: The scopes of the labels around it.
            indexed: The axis that it reads in that tensor.
        """
        own = Limit(_in_scopes(index, scopes), origin)
        names = {_scoped(label, scopes): label for label in index.labels}
        present = {_scoped(label, scopes): label for label in read.labels}
        bounds = {scoped: _axis_of(label, read) for scoped, label in present.items()}
        as_labels = {label: Limit(label, bound) for label, bound in bounds.items()}
        as_indices = {label: Limit(AffineIndex.of_label(label), bound) for label, bound in bounds.items()}
        labels = tuple(names)
        # A statement that selects this index alone gives its labels the same bounds, if there is one; if there is none,
        # it bounds one of them also by this index, which changes no bound where the index exists.
        relevant = (
            relevant_limits(labels, self.limits, self.bounding, as_labels, (own,))
            or relevant_limits(labels, self.limits, self.bounding, as_indices, (own,))
            or relevant_limits(labels, self.limits, self.bounding, as_labels)
        )
        names |= present
        for scoped in (label for limit in relevant for label in limit.labels):
            if scoped not in names:
                names[scoped] = _new_label(scoped.split(_SCOPE)[0], names.values())
        return tuple(
            Limit(with_labels(limit.index, names.__getitem__), indexed if limit == own else limit.bound)
            for limit in relevant
        )

    def _add(
        self, index_map: IndexMap, read: Reference, labels: tuple[str, ...], output: Reference | None, name: str
    ) -> Reference:
        """The result of an EinSum that selects, which is added unless the program has an equal one already.

        Args:
            index_map: The map of the index.
            read: The tensor that it selects from.
            labels: The labels of the result.
            output: The result, if that is given.
            name: What to name the result otherwise.
        """
        operands = (Reference(index_map.name, (*index_map.index.labels, index_map.label)), read)
        promoted = self.promoted_among(frozenset((*labels, *operands[0].labels, *operands[1].labels)))
        key = (SELECT, operands, labels, promoted)
        earlier = self.names.values.get(key)
        if earlier is not None and output is None:
            return Reference(earlier.tensor, earlier.labels)
        if output is None:
            output = Reference(self.names.invent(name), labels)
            self.names.values[key] = TensorReference(output.tensor, labels)
        self.einsums.append(EinSum(output, operands, SELECTED, SELECT, promoted))
        return output

    def _unbounded(self, reference: TensorReference | IndexedReference, index: AffineIndex) -> ParseError:
        """The error for an index of several labels, of which none has a bound, or which bound each other."""
        problem = f"nothing bounds the labels {' and '.join(index.labels)} in {write_expression(reference)}"
        example = f"for {index.labels[-1]} < 3"
        return self.names.error(
            f"{problem}; bound all but one of them, as in `{example}` after the statement", reference.at
        )


def _axis_of(label: str, tensor: Reference) -> AxisBound:
    return AxisBound(tensor.tensor, tensor.labels.index(label))


def _scoped(label: str, scopes: Scopes) -> str:
    """A name of a label that differs between scopes."""
    scope = scopes.get(label, STATEMENT)
    return label if scope == STATEMENT else f"{label}{_SCOPE}{scope}"


def _scopes_in(expression: ExpressionTree, scopes: Scopes) -> Iterator[Scopes]:
    """The scopes of labels inside the aggregates of an expression, where those around it are `scopes`."""
    if isinstance(expression, FunctionCall):
        inner = scopes_inside(expression, scopes)
        if inner is not scopes:
            yield inner
        for argument in expression.arguments:
            yield from _scopes_in(argument, inner)


def _in_scopes(index: str | AffineIndex, scopes: Scopes) -> str | AffineIndex:
    """The index, with labels that differ between scopes."""
    return with_labels(index, lambda label: _scoped(label, scopes))


def _labels(indices: _Indices) -> Iterator[str]:
    for index in indices:
        yield from (index,) if isinstance(index, str) else index.labels


def _placeholders(indices: _Indices) -> dict[int, str]:
    """Labels for the axes whose indices are no labels, by the positions of these axes."""
    placeholders = {}
    for axis, index in enumerate(indices):
        if isinstance(index, AffineIndex):
            placeholders[axis] = _new_label(f"axis{axis}", tuple(_labels(indices)))
    return placeholders


def _new_label(label: str, labels: Collection[str]) -> str:
    """The label, with underscores appended if it is one of `labels`."""
    while label in labels:
        label += "_"
    return label
