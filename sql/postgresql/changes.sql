-- Changes of the tables of tensors: a row for every statement that has changed a table, written by a trigger of the table.
CREATE TABLE IF NOT EXISTS sparseeinsum.changes (
  relation OID NOT NULL,         -- the table
  transaction XID8 NOT NULL,     -- that changed it; 0 in a row that stands for several
  changes BIGINT NOT NULL,       -- how many changes the row stands for
  number NUMERIC NOT NULL        -- the sum of their random numbers
);
CREATE INDEX IF NOT EXISTS changes_of_relations ON sparseeinsum.changes (relation, transaction);
GRANT SELECT ON sparseeinsum.changes TO PUBLIC; -- to whoever may use the schema
CREATE OR REPLACE FUNCTION sparseeinsum.record_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  change BIGINT := pg_catalog.hashtextextended(CAST(pg_catalog.gen_random_uuid() AS TEXT), 0);
BEGIN
  -- Logical replication, for which the trigger of rows is, has no statements: one record for each transaction is enough.
  IF TG_LEVEL = 'ROW' AND EXISTS (
    SELECT FROM sparseeinsum.changes AS c WHERE c.relation = TG_RELID AND c.transaction = pg_catalog.pg_current_xact_id()
  ) THEN
    RETURN NULL;
  END IF;
  -- Now and then, one row takes the place of those of earlier changes. No row is waited for.
  IF change % 64 = 0 AND pg_catalog.current_setting('transaction_isolation') = 'read committed' THEN
    WITH earlier AS (
      SELECT e.ctid
      FROM sparseeinsum.changes AS e
      WHERE e.transaction <> pg_catalog.pg_current_xact_id()
        AND (e.relation = TG_RELID OR NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = e.relation))
      FOR UPDATE SKIP LOCKED
    ),
    removed AS (
      DELETE FROM sparseeinsum.changes AS c WHERE c.ctid = ANY (ARRAY(SELECT e.ctid FROM earlier AS e))
      RETURNING c.relation, c.changes, c.number
    )
    INSERT INTO sparseeinsum.changes
    SELECT r.relation, CAST('0' AS XID8), pg_catalog.sum(r.changes), pg_catalog.sum(r.number)
    FROM removed AS r
    WHERE r.relation = TG_RELID
    GROUP BY r.relation;
  END IF;
  INSERT INTO sparseeinsum.changes VALUES (TG_RELID, pg_catalog.pg_current_xact_id(), 1, change);
  RETURN NULL;
END
$function$;
COMMENT ON FUNCTION sparseeinsum.record_change() IS 'Internal: records changes of the tables of tensors.';
