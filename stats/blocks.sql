-- Counts the blocks of indices that have entries, for several decompositions in one scan. Placeholders: `entries` is a
-- query of the indices of all entries; `block` is all keys of an entry in a decomposition, as one value. The projection
-- is repeated for every decomposition.
SELECT
  COUNT(DISTINCT block) AS blocks
FROM entries
