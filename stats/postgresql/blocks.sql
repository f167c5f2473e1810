-- Counts the blocks of indices that hold an entry, for any number of decompositions, in one scan. `entries`, a query of
-- the indices of all entries, is replaced; the projection is repeated for every decomposition, whose keys, all as one,
-- replace `block`.
SELECT
  COUNT(DISTINCT block) AS blocks
FROM entries
