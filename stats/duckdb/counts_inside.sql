-- Counts the entries at every index of a demoted axis, which must have at least one index. Placeholders: `relation`,
-- `value`, `fill`, `position` (of the axis among those of the arrays), `extents` (of the arrays) and `bound` (of the
-- axis).
SELECT
  UNNEST(RANGE(bound)) AS place,
  UNNEST(TENSOR_NNZ_ALONG(value, position, extents, fill)) AS entries
FROM relation
