-- Counts the entries at every index of an axis that has any. `entries`, a query of the indices of all entries, is
-- replaced, and so is `axis`.
SELECT
  axis AS place,
  COUNT(*) AS entries
FROM entries
GROUP BY
  axis
