"""The command line: measures statements that spend their time in kernels, for compile-kernels; prints JSON."""

import json
import time

import sparseeinsum as se

_REPEATS = 5
_TABLES = (
    "SET threads = 1",
    "CREATE TABLE x AS SELECT i AS j, list_transform(range(64), lambda k: (i * 31 + k) % 97 / 97.0) AS val "
    "FROM range(4096) AS t(i)",
    "CREATE TABLE a AS SELECT i // 16 AS i, i * 7919 % 4096 AS j, i % 13 / 13.0 AS w FROM range(200000) AS t(i)",
)
STATEMENTS = {
    "sums of scaled rows": "SELECT a.i, tensor_sum_scaled(w, val) FROM a JOIN x USING (j) GROUP BY a.i",
    "largest of rows": "SELECT a.i, tensor_max(val) FROM a JOIN x USING (j) GROUP BY a.i",
    "an expression": "SELECT sum(tensor_norm(tensor_map('sigmoid(u) * exp(-u)', val))) FROM x, range(10)",
    "small products": "SELECT sum(tensor_norm(tensor_einsum('ij,kj->ik', val, val, [8, 8, 8]))) FROM x, range(10)",
    "sums of products": "SELECT sum(tensor_norm(tensor_einsum('ij,ik->j', val, val, [8, 8, 8]))) FROM x, range(10)",
}


def main() -> None:
    """Print the minimum time of every statement; other work on the machine can only add to it."""
    with se.connect() as database:
        connection = database.connection
        for statement in _TABLES:
            connection.execute(statement)
        print(json.dumps({name: _minimum_seconds(connection.execute, text) for name, text in STATEMENTS.items()}))


def _minimum_seconds(execute: object, text: str) -> float:
    assert callable(execute)
    seconds = []
    for _ in range(_REPEATS):
        start = time.process_time()
        execute(text).fetchall()
        seconds.append(time.process_time() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
