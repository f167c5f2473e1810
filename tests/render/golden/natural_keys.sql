WITH T_indices AS MATERIALIZED (
  /* T[A, B], with indices for its keys */
  SELECT
    d_1.index AS a,
    d_2.index AS b,
    t.w
  FROM main.trust AS t
  LEFT JOIN sparseeinsum.dictionary_person AS d_1
    ON d_1.key = CAST(t.a AS TEXT) COLLATE "C"
  LEFT JOIN sparseeinsum.dictionary_person AS d_2
    ON d_2.key = CAST(t.b AS TEXT) COLLATE "C"
), Y_by_index AS (
  SELECT
    u.a AS i,
    v.b AS k,
    SUM(CAST(u.w AS DOUBLE) * CAST(v.w AS DOUBLE)) AS val
  FROM T_indices AS u
  JOIN T_indices AS v
    ON u.b = v.a
  GROUP BY
    u.a,
    v.b
)
/* Y[I, K] = sum(T[I, J] * T[J, K]) */
SELECT
  d_1.key AS i,
  d_2.key AS k,
  t.val
FROM Y_by_index AS t
LEFT JOIN sparseeinsum.dictionary_person AS d_1
  ON d_1.index = t.i
LEFT JOIN sparseeinsum.dictionary_person AS d_2
  ON d_2.index = t.k;
