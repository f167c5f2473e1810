WITH "T_sum" AS (
  /* T_sum[I, K] = sum(A[I, J] * H[J, K]) */
  SELECT
    "u"."dim_0" AS "i",
    "v"."dim_1" AS "k",
    SUM("u"."val" * "v"."val") AS "val"
  FROM "A" AS "u"
  JOIN "H" AS "v"
    ON "u"."dim_1" = "v"."dim_0"
  GROUP BY
    "u"."dim_0",
    "v"."dim_1"
), "T" AS (
  /* T[I, K] = relu(T_sum[I, K]) */
  SELECT
    "u"."i" AS "i",
    "u"."k" AS "k",
    GREATEST("u"."val", 0.0e0) AS "val"
  FROM "T_sum" AS "u"
), "Y_sum" AS (
  /* Y_sum[K] = sum(T[L, K]) */
  SELECT
    "u"."k" AS "k",
    SUM("u"."val") AS "val"
  FROM "T" AS "u"
  GROUP BY
    "u"."k"
), "T_by_i_k_dense" AS (
  /* T[I, K], every tuple present */
  SELECT
    intDiv("g"."position", 2) AS "i",
    "g"."position" % 2 AS "k",
    COALESCE("t"."val", CAST(0 AS Nullable(Float64))) AS "val"
  FROM (
    SELECT
      "range" AS "position"
    FROM (
      SELECT
        CAST("number" AS Int64) AS "range"
      FROM numbers(6)
    ) AS "range"
  ) AS "g"
  LEFT JOIN "T" AS "t"
    ON "t"."i" = intDiv("g"."position", 2) AND "t"."k" = "g"."position" % 2
), "Y_sum_by_k_dense" AS (
  /* Y_sum[K], every tuple present */
  SELECT
    "g"."position" AS "k",
    COALESCE("t"."val", CAST(0 AS Nullable(Float64))) AS "val"
  FROM (
    SELECT
      "range" AS "position"
    FROM (
      SELECT
        CAST("number" AS Int64) AS "range"
      FROM numbers(2)
    ) AS "range"
  ) AS "g"
  LEFT JOIN "Y_sum" AS "t"
    ON "t"."k" = "g"."position"
)
/* Y[I, K] = T[I, K] / Y_sum[K] */
SELECT
  "u"."i" AS "i",
  "u"."k" AS "k",
  CASE
    WHEN ABS("u"."val" / "v"."val") <= 1.7976931348623157e+308
    THEN "u"."val" / "v"."val"
    ELSE CAST(throwIf(NOT ABS("u"."val" / "v"."val") <= 1.7976931348623157e+308, 'Y is not finite: ') AS Nullable(Float64))
  END AS "val"
FROM "T_by_i_k_dense" AS "u"
JOIN "Y_sum_by_k_dense" AS "v"
  ON "u"."k" = "v"."k"
SETTINGS "join_use_nulls" = 1, "aggregate_functions_null_for_empty" = 1;

/* Z[I] = sum(N[I, J] * N[I, J]) */
SELECT
  "u"."dim_0" AS "i",
  CAST(SUM("u"."val" * "u"."val") AS Nullable(Int64)) AS "val"
FROM "N" AS "u"
GROUP BY
  "u"."dim_0"
SETTINGS "join_use_nulls" = 1, "aggregate_functions_null_for_empty" = 1;

WITH "W_max" AS (
  /* W_max[I] = max(A[I, J]) */
  SELECT
    "u"."dim_0" AS "i",
    CASE
      WHEN COUNT(*) = 4
      THEN MAX("u"."val")
      ELSE GREATEST(MAX("u"."val"), CAST(0 AS Nullable(Float64)))
    END AS "val"
  FROM "A" AS "u"
  GROUP BY
    "u"."dim_0"
), "A_by_dim_0_dim_1_dense" AS (
  /* A[DIM_0, DIM_1], every tuple present */
  SELECT
    intDiv("g"."position", 4) AS "dim_0",
    "g"."position" % 4 AS "dim_1",
    COALESCE("t"."val", CAST(0 AS Nullable(Float64))) AS "val"
  FROM (
    SELECT
      "range" AS "position"
    FROM (
      SELECT
        CAST("number" AS Int64) AS "range"
      FROM numbers(12)
    ) AS "range"
  ) AS "g"
  LEFT JOIN "A" AS "t"
    ON "t"."dim_0" = intDiv("g"."position", 4) AND "t"."dim_1" = "g"."position" % 4
), "W_max_by_i_dense" AS (
  /* W_max[I], every tuple present */
  SELECT
    "g"."position" AS "i",
    COALESCE("t"."val", CAST(0 AS Nullable(Float64))) AS "val"
  FROM (
    SELECT
      "range" AS "position"
    FROM (
      SELECT
        CAST("number" AS Int64) AS "range"
      FROM numbers(3)
    ) AS "range"
  ) AS "g"
  LEFT JOIN "W_max" AS "t"
    ON "t"."i" = "g"."position"
), "W_exp" AS (
  /* W_exp[I, J] = exp(A[I, J] - W_max[I]) */
  SELECT
    "u"."dim_0" AS "i",
    "u"."dim_1" AS "j",
    EXP("u"."val" - "v"."val") AS "val"
  FROM "A_by_dim_0_dim_1_dense" AS "u"
  JOIN "W_max_by_i_dense" AS "v"
    ON "u"."dim_0" = "v"."i"
), "W_sum" AS (
  /* W_sum[I] = sum(W_exp[I, J]) */
  SELECT
    "u"."i" AS "i",
    SUM("u"."val") AS "val"
  FROM "W_exp" AS "u"
  GROUP BY
    "u"."i"
), "W_inverse" AS (
  /* W_inverse[I] = where(W_sum[I] == 0, 0, 1 / W_sum[I]) */
  SELECT
    "u"."i" AS "i",
    CASE WHEN "u"."val" = 0.0e0 THEN 0.0e0 ELSE 1.0e0 / "u"."val" END AS "val"
  FROM "W_sum" AS "u"
)
/* W[I, J] = W_exp[I, J] * W_inverse[I] */
/* what has no row holds 0.25 */
SELECT
  "u"."i" AS "i",
  "u"."j" AS "j",
  "u"."val" * "v"."val" AS "val"
FROM "W_exp" AS "u"
JOIN "W_inverse" AS "v"
  ON "u"."i" = "v"."i"
SETTINGS "join_use_nulls" = 1, "aggregate_functions_null_for_empty" = 1;
