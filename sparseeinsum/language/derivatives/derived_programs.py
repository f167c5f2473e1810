"""Derivatives: programs with derivatives, made from programs."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.derivatives.complex_tensors import complex_inputs, complex_tensors
from sparseeinsum.language.derivatives.modes import Derivatives, forward_mode, reverse_mode
from sparseeinsum.language.derivatives.recomputation import check_checkpoints, with_recomputation
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.names import ProgramNames, names_of_program
from sparseeinsum.presentation.tracebacks import one_frame


@one_frame
def gradient(
    program: Program | str,
    /,
    of: str,
    by: str | Iterable[str] | Mapping[str, str],
    entries: Iterable[str] = (),
    complex: Iterable[str] = (),  # what they are
    checkpoint: str | Iterable[str] | None = None,
) -> Program:
    """The program with the gradient of a scalar result, by reverse mode.

    It computes the outputs of the program, the scalar, and for every tensor in `by` the tensor of partial derivatives:
    d_W1 for W1. Values that the program computes are read, not computed again, unless `checkpoint` is given.

    At kinks, derivatives are those of torch: 0 of relu and abs at 0, a half for each of two equal arguments of `max`,
    equal parts for all equal extremes of an aggregate. Comparisons, floor, sign and the like have the derivative 0. A
    branch of `where` that is not taken contributes 0. The gradient is that of the function of dense arrays: absent
    entries have derivatives, too. The real and imaginary parts of a gradient by a complex tensor are the derivatives by
    the real and imaginary parts of the tensor.

    Args:
        program: The program, or its text.
        of: The name of the scalar.
        by: The names of tensors: inputs or results, of floating point; or a mapping from them to the names of results.
        entries: Names of inputs in `by` whose gradients are wanted only where they are not 0, and are 0 elsewhere. So
            the gradient by a sparse tensor is as sparse, and only its entries are computed.
        complex: The names of inputs of complex numbers, besides those that the program declares to be.
        checkpoint: The names of the results that the gradient reads. All other results that it needs are computed again
            from these and from inputs, so that a run need not keep them. By default it reads all results that it needs.

    Raises:
        SemanticsError: The result is no scalar, does not depend on a tensor, an operation has no derivative, a name
            is taken, or a checkpoint is no result.
    """
    before = lower_text(program) if isinstance(program, str) else program
    named = _named(before, by)
    names = names_of_program(before)
    complexes = complex_tensors(before.einsums, {*complex_inputs(before), *complex})
    kept = None if checkpoint is None else frozenset([checkpoint] if isinstance(checkpoint, str) else checkpoint)
    check_checkpoints(sorted(kept or ()), before.einsums)
    derivatives = reverse_mode(before.einsums, of, named, names, frozenset(entries), complexes)
    again: tuple[str, ...] = ()
    if kept is not None:
        einsums, again = with_recomputation(before.einsums, derivatives.einsums, kept, names)
        derivatives = replace(derivatives, einsums=einsums)
    derived = _with_derivatives(before, derivatives, (of, *named.values()), names)
    return replace(derived, recomputed=(*before.recomputed, *again))


@one_frame
def jvp(
    program: Program | str,
    /,
    of: str | Iterable[str] | Mapping[str, str],
    by: Mapping[str, str],
    complex: Iterable[str] = (),  # what they are
) -> Program:
    """The program with what small changes of tensors add to results, by forward mode: a Jacobian times a vector.

    It computes the outputs of the program, and d_Y for every result Y in `of`. The conventions are those of `gradient`;
    the Hessian of a scalar times a vector is `se.jvp(se.gradient(program, "loss", "W"), of="d_W", by={"W": "V"})`.

    Args:
        program: The program, or its text.
        of: The names of results; or a mapping from them to the names of their tangents.
        by: The names of tensors with the changes, by those of the tensors that change; shapes are equal, and both are
            real or both complex.
        complex: The names of inputs of complex numbers, besides those that the program declares to be.

    Raises:
        SemanticsError: A result does not depend on any of the tensors, an operation has no derivative, or a name is
            taken.
    """
    before = lower_text(program) if isinstance(program, str) else program
    named = _named(before, of)
    names = names_of_program(before, (*by, *by.values()))
    complexes = complex_tensors(before.einsums, {*complex_inputs(before), *complex})
    complexes |= {change for tensor, change in by.items() if tensor in complexes}
    derivatives = forward_mode(before.einsums, named, by, names, complexes)
    return _with_derivatives(before, derivatives, tuple(named.values()), names)


def _named(program: Program, tensors: str | Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """The names of derivatives by those of tensors; refuses names that the program has."""
    if isinstance(tensors, Mapping):
        named = dict(tensors)
    else:
        named = {name: f"d_{name}" for name in ([tensors] if isinstance(tensors, str) else tensors)}
    if not named:
        raise SemanticsError("derivatives of nothing were asked for; name one tensor or more")
    names = names_of_program(program)
    for tensor, name in named.items():
        if names.is_taken(name):
            hint = f"name the derivative, as in {{{tensor!r}: {name + '_2'!r}}}"
            raise SemanticsError(f"the program has {name} already; {hint}")
    return named


def _with_derivatives(
    program: Program, derivatives: Derivatives, outputs: tuple[str, ...], names: ProgramNames
) -> Program:
    return replace(
        program,
        einsums=(*program.einsums, *derivatives.einsums),
        outputs=tuple(dict.fromkeys((*program.outputs, *outputs))),
        generated=tuple(names.generated.values()),
        differentiated=tuple(dict.fromkeys((*program.differentiated, *derivatives.differentiated))),
        complexes=tuple(dict.fromkeys((*program.complexes, *derivatives.complexes))),
    )
