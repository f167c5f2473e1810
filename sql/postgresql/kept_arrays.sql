
-- What the package keeps in the memory of a session between statements. Only the process of the session has it.
CREATE$or_replace FUNCTION tensor_keep(u anyarray) RETURNS bigint
    AS 'MODULE_PATHNAME', '$kept_keep'
    LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION tensor_keep(anyarray) IS 'A handle of a copy of an array, which stays in the memory of the session until tensor_release; 0 if there is no room.';

-- Stable, since what is kept does not change: PostgreSQL computes every WITH query apart that calls a volatile function.
CREATE$or_replace FUNCTION tensor_kept(handle bigint, "type" anyarray) RETURNS anyarray
    AS 'MODULE_PATHNAME', '$kept_read'
    LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION tensor_kept(bigint, anyarray) IS 'The array that tensor_keep returned a handle of; the second argument is any array of its type.';

CREATE$or_replace FUNCTION tensor_kept_bytes(handle bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', '$kept_size'
    LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION tensor_kept_bytes(bigint) IS 'The bytes of an array that is kept under a handle; NULL if none is.';

CREATE$or_replace FUNCTION tensor_release(handle bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', '$kept_release'
    LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION tensor_release(bigint) IS 'Release the array that is kept under a handle; whether there was one.';
