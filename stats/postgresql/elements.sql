-- The elements of all arrays of a relation, with their positions in the arrays; one row for each. Placeholders:
-- `relation` and `value`; the keys of the relation are added to the SELECT list. This is for engines that do not
-- support set-returning functions in every SELECT list.
SELECT
  unnested.element,
  unnested.number - 1 AS place
FROM relation
CROSS JOIN LATERAL UNNEST(value) WITH ORDINALITY AS unnested(element, number)
