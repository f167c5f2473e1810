"""Loading: copies streams and rows of the database into temporary tables, because several queries read them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import EngineError
from sparseeinsum.language.tensors import StoredTensor, fully_promoted
from sparseeinsum.loading.database_sources import readable_source
from sparseeinsum.loading.entry_stream import EntryStream
from sparseeinsum.loading.sources.input_data import DatabaseRows
from sparseeinsum.statistics.row_checks import check_entries
from sparseeinsum.storage.dictionaries import Dictionaries
from sparseeinsum.storage.existing_tables import read_relation, relation_as_tensor
from sparseeinsum.storage.tensor_description import TensorDescription
from sparseeinsum.storage.tensor_tables import stored_tensor
from sparseeinsum.storage.value_checks import check_values

INCOMING = temporary_name("incoming")


@contextmanager
def streamed_entries(engine: Engine, stream: EntryStream) -> Iterator[StoredTensor]:
    """Copy a stream into a temporary table of entries, which exists in the context.

    Raises:
        DataError: A row is invalid; coordinates may be repeated.
    """
    try:
        with engine.registered(stream.reader(), INCOMING) as incoming:
            dictionaries = Dictionaries(engine).for_columns(stream.name, incoming, stream.columns)
            tensor = stream.tensor(dictionaries)
            entries = stored_tensor(tensor, fully_promoted(len(tensor.axes)), incoming.sql(engine.dialect_name))
            yield replace(entries, holds_keys=any(dictionaries))
    except EngineError:
        if stream.failure is not None:
            raise stream.failure from None
        raise


@contextmanager
def copied_entries(engine: Engine, description: TensorDescription, data: DatabaseRows) -> Iterator[StoredTensor]:
    """Copy rows that the database can read into a temporary table of entries, which exists in the context.

    Raises:
        CatalogueError: There is no such table, view or file.
        DataError: A row is invalid; coordinates may be repeated.
    """
    name = description.name
    with readable_source(engine, data.source) as (title, source):
        columns = [column.name for column in read_relation(engine, name, title, source).columns]
        index, value = data.columns.among(name, columns)
        incoming = exp.table_(INCOMING, db=engine.dialect.temporary_schema)
        needed = dict.fromkeys([*index, *([] if value is None else [value])])
        number = exp.alias_(exp.Literal.number(1), "sparseeinsum_number")  # for a tensor without columns
        expressions: list[exp.Expr] = [exp.column(column, quoted=True) for column in needed]
        engine.create_temporary(incoming, exp.select(*(expressions or [number])).from_(source))
        described = relation_as_tensor(engine, description, read_relation(engine, name, title, incoming), index, value)
        if value is not None:
            check_values(engine, described.stored, described.column_types[-1])
        check_entries(described.stored, engine)
        yield described.stored
        engine.execute(exp.Drop(tables=[incoming], kind="TABLE"))
