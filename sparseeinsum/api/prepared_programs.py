"""API: a program that is planned once and run often, with new values of some of its inputs."""

from types import TracebackType
from typing import Any, Self

from sparseeinsum.api.plans import Plan
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.locking import synchronized
from sparseeinsum.pipeline.prepared_plans import PreparedPlan
from sparseeinsum.results.results import Results


class PreparedProgram:
    """A program that is planned, and whose statements are prepared. Made by `Database.prepare`.

    A run takes little more time than its statements. Its results are those of `Database.run` on the same values.
    """

    def __init__(self, prepared: PreparedPlan, engine: Engine) -> None:
        self._prepared = prepared
        self._engine = engine

    def __repr__(self) -> str:
        return f"<prepared program of {', '.join(self.plan.outputs)} with new values of {', '.join(self.inputs)}>"

    @property
    def connection(self) -> Any:  # noqa: ANN401  # of the engine's driver, whose types are its own
        """The connection of the driver."""
        return self._engine.connection

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs that a run takes values of."""
        return self._prepared.inputs

    @property
    def plan(self) -> Plan:
        """The plan of the last run; at first that for the data of the time when the program was prepared."""
        return Plan(self._prepared.plan, self._engine)

    @synchronized
    def run(self, **values: object) -> Results:
        """Run the program in one transaction, on the stored tensors as they are now.

        Args:
            values: New values of inputs, as in step.run(W1=array): arrays, sparse arrays or tables in memory, of the
                shapes that the program was prepared with. Inputs without new values keep those of the last run; at
                first they have those that were stored when the program was prepared.

        Raises:
            PlanError: The program was not prepared for new values of a tensor.
            ShapeError: Values have another shape than before.
            DataError: Values are invalid, or are not in memory.
            EngineError: The database refused a statement.
        """
        rows = {name: self._prepared.rows_of(name, data) for name, data in values.items()}
        return Results(self._prepared.run(rows))

    @synchronized
    def close(self) -> None:
        """Remove from the connection what the program has there; it cannot run any more."""
        self._prepared.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
