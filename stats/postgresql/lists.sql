-- The first tuple of a table of lists that is not sound: its number, what is wrong with it, lengths, and its keys.
SELECT row, problem, lengths, keys
FROM (
  SELECT
    row,
    keys,
    lengths,
    CASE
      WHEN is_no_key THEN 'key'
      WHEN is_null THEN 'is null'
      WHEN has_shape THEN 'shape'
      WHEN lengths[1] <> ANY (lengths) THEN 'lengths'
      WHEN has_null OR EXISTS (SELECT FROM UNNEST(val) AS v (element) WHERE element IS NULL) THEN 'has null'
      WHEN is_outside THEN 'outside'
      WHEN is_unordered THEN 'order'
      WHEN ROW_NUMBER() OVER (PARTITION BY keys ORDER BY row) > 1 THEN 'repeated'
    END AS problem
  FROM (
    SELECT
      ROW_NUMBER() OVER () - 1 AS row,
      {is_no_key} AS is_no_key,
      {keys} AS keys,
      {is_null} AS is_null,
      {has_shape} AS has_shape,
      {lengths} AS lengths,
      val,
      {lists}
    FROM {relation}
  ) AS tuples
  CROSS JOIN LATERAL (
    SELECT
      BOOL_OR({has_null}) AS has_null,
      BOOL_OR({is_outside}) AS is_outside,
      BOOL_OR(is_unordered) AS is_unordered
    FROM (
      SELECT {positions}, ({positions}) <= ({previous}) AS is_unordered
      FROM UNNEST({lists}) WITH ORDINALITY AS u ({positions}, place)
      WINDOW earlier AS (ORDER BY place)
    ) AS positions
  ) AS checked
) AS problems
WHERE problem IS NOT NULL
ORDER BY row
LIMIT 1
