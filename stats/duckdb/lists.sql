-- The first tuple of a table of lists that is not sound: its number, what is wrong with it, lengths, and its keys.
SELECT row, problem, lengths, keys
FROM (
  SELECT
    row,
    keys,
    [len(list) FOR list IN lists] || [len(val)] AS lengths,
    CASE
      WHEN is_no_key THEN 'key'
      WHEN len([list FOR list IN lists IF list IS NULL]) > 0 OR val IS NULL THEN 'is null'
      WHEN len([list FOR list IN lists IF len(list) <> len(val)]) > 0 THEN 'lengths'
      WHEN len([list FOR list IN lists IF list_count(list) <> len(list)]) > 0 OR list_count(val) <> len(val) THEN 'has null'
      WHEN len([list FOR list IN lists IF list_min(list) < 0]) > 0 OR {is_beyond} THEN 'outside'
      WHEN list_bool_or([pair[1] <= pair[2] FOR pair IN list_zip(numbers[2:], numbers[:-2])]) THEN 'order'
      WHEN ROW_NUMBER() OVER (PARTITION BY keys) > 1 THEN 'repeated'
    END AS problem
  FROM (
    SELECT
      ROW_NUMBER() OVER () - 1 AS row,
      {is_no_key} AS is_no_key,
      {keys} AS keys,
      {lists} AS lists,
      {numbers} AS numbers,
      val
    FROM {relation}
  ) AS tuples
) AS problems
WHERE problem IS NOT NULL
ORDER BY row
LIMIT 1
