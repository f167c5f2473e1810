"""The workloads as plain SQL, products in the best order; tables have the columns i0, i1, ... and val."""


def spmm(left: str, right: str) -> str:
    """The product of two matrices, each a table or a query in parentheses."""
    return f"""SELECT u.i0, v.i1, SUM(u.val * v.val) AS val FROM {left} AS u JOIN {right} AS v ON u.i1 = v.i0
    GROUP BY u.i0, v.i1"""


def attention(width: int) -> str:
    """Scores of projections of a width, before normalisation."""
    return f"""WITH q AS ({spmm("X", "WQ")}), k AS ({spmm("X", "WK")})
    SELECT a.i0, a.i1, SUM(q.val * a.val * k.val) / SQRT({width}.0) AS val
    FROM A AS a JOIN q ON a.i0 = q.i0 JOIN k ON a.i1 = k.i0 AND q.i1 = k.i1 GROUP BY a.i0, a.i1"""


def _layer(features: str, weights: str) -> str:
    """Nodes without a message have the sigmoid of 0; D has every node."""
    return f"""SELECT g.i0, g.i1, 1 / (1 + EXP(-COALESCE(t.val, 0))) AS val
    FROM (SELECT d.i0, w.i1 FROM D AS d CROSS JOIN (SELECT DISTINCT i1 FROM {weights}) AS w) AS g
    LEFT JOIN ({spmm("s", f"({spmm(features, weights)})")}) AS t ON g.i0 = t.i0 AND g.i1 = t.i1"""


GCN = f"""WITH s AS (
    SELECT a.i0, a.i1, u.val * a.val * v.val AS val FROM D AS u JOIN A AS a ON u.i1 = a.i0 JOIN D AS v ON a.i1 = v.i0
), h AS ({_layer("X", "W1")}) {_layer("h", "W2")}"""

SDDMM = """SELECT a.i0, a.i1, SUM(a.val * u.val * v.val) AS val
FROM A AS a JOIN U AS u ON a.i0 = u.i0 JOIN V AS v ON a.i1 = v.i0 AND u.i1 = v.i1 GROUP BY a.i0, a.i1"""

MTTKRP = """SELECT t.i0, b.i1, SUM(t.val * b.val * c.val) AS val
FROM T AS t JOIN B AS b ON t.i1 = b.i0 JOIN C AS c ON t.i2 = c.i0 AND b.i1 = c.i1 GROUP BY t.i0, b.i1"""

TTM = """SELECT t.i0, t.i1, u.i1 AS i2, SUM(t.val * u.val) AS val
FROM T AS t JOIN U AS u ON t.i2 = u.i0 GROUP BY t.i0, t.i1, u.i1"""

TRIANGLES = """SELECT SUM(a.val * b.val * c.val) AS val
FROM A AS a JOIN A AS b ON a.i1 = b.i0 JOIN A AS c ON a.i0 = c.i0 AND b.i1 = c.i1"""

MIN_PLUS = "SELECT a.i0, MIN(a.val + d.val) AS val FROM A AS a JOIN D AS d ON a.i1 = d.i0 GROUP BY a.i0"

PRODUCT = """SELECT a.i0, a.i1, a.i2, a.i3, a.val * b.val AS val
FROM A AS a JOIN B AS b ON a.i0 = b.i0 AND a.i1 = b.i1 AND a.i2 = b.i2 AND a.i3 = b.i3"""

SUM = """SELECT i0, i1, i2, i3, SUM(val) AS val FROM (SELECT * FROM A UNION ALL SELECT * FROM B) AS both_tensors
GROUP BY i0, i1, i2, i3"""

_TAIL = spmm("C", f"({spmm('D', 'E')})")
CHAIN = spmm(f"({spmm('A', 'B')})", f"({_TAIL})")
