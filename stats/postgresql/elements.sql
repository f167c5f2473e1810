-- The elements of all arrays of a relation, one row for each, and its place in its array. `relation` and `value` are
-- replaced, and the keys of the relation are selected, too. For engines that refuse sets in a SELECT list here and there.
SELECT
  unnested.element,
  unnested.number - 1 AS place
FROM relation
CROSS JOIN LATERAL UNNEST(value) WITH ORDINALITY AS unnested(element, number)
