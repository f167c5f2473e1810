"""Plans: remarks on a plan, one line each: how it was rewritten, how absent entries are treated, what was replanned."""

from collections.abc import Iterator, Set

from sparseeinsum.decompose.decomposed_graph import Step
from sparseeinsum.decompose.fused_products import FusedKernel, FusedProduct
from sparseeinsum.kernels.duckdb.library import available_library, gpu_in_use
from sparseeinsum.plans.analysis import Analysis
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.rewriting_notes import rewriting_notes
from sparseeinsum.semantics.exactness import Evaluation, JoinKind


def notes_on(plan: ProgramPlan, analysis: Analysis | None) -> list[str]:
    """All remarks on `plan`, and on the run that `analysis` describes if there was one."""
    notes = list(rewriting_notes(plan.rewriting))
    in_lists = {name for name, tensor in plan.inputs.items() if tensor.stored.lists is not None}
    for step in plan.decomposed.steps:
        notes += _evaluation_notes(step, plan.evaluations[step.einsum.output.tensor], in_lists)
    products = [
        step.einsum.output.tensor
        for step in plan.decomposed.steps
        if plan.alternatives.model.is_matrix_product(step.einsum, step.choice)
    ]
    if products:
        notes.append(f"{', '.join(products)}: matrix products of arrays are computed by {_computing(plan)}")
    space = plan.alternatives.search_space()
    considered, possible = (sum(map(len, choices.values())) for choices in (space.considered(), space.all()))
    if considered < possible:
        notes.append(
            f"the search looked at {considered} of {possible} choices, as more would take longer than they can gain in "
            "one run (db.prepare looks at all)"
        )
    if analysis is not None:
        notes += [replanning.summary for replanning in analysis.replannings]
    return notes


def _computing(plan: ProgramPlan) -> str:
    """What computes the matrix products of a plan."""
    library, gpu = (available_library(), gpu_in_use()) if plan.dialect.calls_python else (None, None)
    computing = "our own kernels" if library is None or library.blas is None else library.blas.name
    return computing if gpu is None else f"{computing}, large ones by {gpu.name}"


def _evaluation_notes(step: Step, evaluation: Evaluation, in_lists: Set[str]) -> Iterator[str]:
    name, operands = step.einsum.output.tensor, step.einsum.operands
    if step.computed_in:
        yield f"{name}: computed at once with {step.computed_in}, and never stored"
        return
    if step.fused is not None:
        yield f"{name}: {_fused_note(step.fused)}"
        return
    dense = [operand.tensor for operand, is_dense in zip(operands, step.absence.dense, strict=True) if is_dense]
    if dense:
        yield f"{name}: every tuple of {', '.join(dense)} must be present, because {evaluation.reason}"
    elif step.absence.join != JoinKind.INNER:
        yield f"{name}: a {step.absence.join} join fills in what is absent, because {evaluation.reason}"
    if step.indexed is not None:
        indexed = operands[step.indexed]
        labels = ", ".join(label for label in indexed.labels if label in step.promoted)
        yield f"{name}: {indexed.tensor} is kept in memory as one array and read at {labels}, without a join"
    if step.orders:
        ordered = [
            f"{operands[index].tensor} is ordered by {', '.join(order.rows)}"
            + (" from lists" if operands[index].tensor in in_lists else "")
            for index, order in step.orders.items()
        ]
        yield f"{name}: {' and '.join(ordered)} in memory, {_use_of_order(step)}"
    listed = [operand.tensor for index, operand in enumerate(operands) if index not in step.orders]
    listed = [name for name in dict.fromkeys(listed) if name in in_lists]
    if listed:
        yield f"{name}: entries of {', '.join(listed)} are read out of lists, one row an entry"
    if _counts_absent_pairs(step, evaluation):
        yield f"{name}: {step.einsum.aggregate} counts {evaluation.constant} for every pair of tuples left out"
    if evaluation.detects_nonfinite:
        yield f"{name}: a run ends where it turns NaN or infinite (nonfinite='allow' lets it go on)"


def _use_of_order(step: Step) -> str:
    if step.cost.is_sparse_matmul:
        return "and multiplied by an array at once"
    return "and matched row by row, without a join" if step.cost.is_matched else "without a hash table of groups"


def _fused_note(product: FusedProduct) -> str:
    first, second, third = (operand.tensor for operand in product.einsum.operands)
    match product.kernel:
        case FusedKernel.SAMPLED:
            return f"rows of {second} and {third}, which are kept in memory, are multiplied only at entries of {first}"
        case FusedKernel.ROWS:
            rows = ", ".join(product.orders[0].rows)
            return (
                f"{first} is ordered by {rows} in memory, and each entry multiplied by rows of {second} and {third}, "
                "which are kept in memory, too"
            )
        case FusedKernel.MASKED:
            return f"{second} and {third} are multiplied row by row in memory, only where {first} has entries"


def _counts_absent_pairs(step: Step, evaluation: Evaluation) -> bool:
    """Whether groups lack pairs of tuples whose constant value changes the aggregate."""
    is_grouped = not step.promoted <= frozenset(step.einsum.output.labels)
    return is_grouped and evaluation.constant is not None and not evaluation.ignores_constant
