-- Counts the entries at every index of an axis inside the arrays, if there is any. `relation`, `value`, `fill`,
-- `position` (of the axis among those inside), `extents` (of those) and `bound` (of the axis) are replaced.
SELECT
  place,
  entries
FROM (
  SELECT
    GENERATE_SERIES(0, bound - 1) AS place,
    UNNEST(TENSOR_NNZ_ALONG(value, position, extents, fill)) AS entries
  FROM relation
) AS counted
WHERE
  NOT entries IS NULL
