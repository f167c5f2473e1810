-- Counts the entries at every index of an axis that has any. Placeholders: `entries` is a query of the indices of all
-- entries, `axis` a column of it.
SELECT
  axis AS place,
  COUNT(*) AS entries
FROM entries
GROUP BY
  axis
