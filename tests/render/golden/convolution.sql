WITH Y_X AS (
  /* Y_X[Y, R, AXIS1] = sum(where(X_at[Y, R, AXIS0], X[AXIS0, AXIS1], 0)) */
  SELECT
    u.y,
    u.r,
    v.dim_1 AS axis1,
    SUM(CASE WHEN CAST(CAST(1 AS REAL) AS DOUBLE) <> 0 THEN v.val ELSE 0.0 END) AS val
  FROM (
    SELECT
      y.range AS y,
      r.range AS r,
      y.range + r.range AS axis0
    FROM RANGE(4) AS y
    CROSS JOIN RANGE(2) AS r
  ) AS u
  JOIN main.X AS v
    ON u.axis0 = v.dim_0
  GROUP BY
    u.y,
    u.r,
    v.dim_1
), Y_X2 AS (
  /* Y_X2[Y, R, X, S] = sum(where(Y_X_at[X, S, AXIS2], Y_X[Y, R, AXIS2], 0)) */
  SELECT
    v.y,
    v.r,
    u.x,
    u.s,
    SUM(CASE WHEN CAST(CAST(1 AS REAL) AS DOUBLE) <> 0 THEN v.val ELSE 0.0 END) AS val
  FROM (
    SELECT
      x.range AS x,
      s.range AS s,
      x.range + s.range AS axis2
    FROM RANGE(4) AS x
    CROSS JOIN RANGE(3) AS s
  ) AS u
  JOIN Y_X AS v
    ON u.axis2 = v.axis1
  GROUP BY
    v.y,
    v.r,
    u.x,
    u.s
), W_by_dim_0_dim_1 AS (
  /* W[DIM_0, DIM_1] */
  SELECT
    s.dim_0,
    s.dim_1,
    s.val
  FROM (
    SELECT
      t.dim_0,
      UNNEST(RANGE(3)) AS dim_1,
      UNNEST(t.val) AS val
    FROM main.W AS t
  ) AS s
)
/* Y[Y, X] = sum(Y_X2[Y, R, X, S] * W[R, S]) */
SELECT
  u.y,
  u.x,
  SUM(u.val * v.val) AS val
FROM Y_X2 AS u
JOIN W_by_dim_0_dim_1 AS v
  ON u.r = v.dim_0 AND u.s = v.dim_1
GROUP BY
  u.y,
  u.x;
