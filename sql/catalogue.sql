-- The stored tensors of a database, and the tables that contain them.
CREATE TABLE IF NOT EXISTS sparseeinsum.tensors (
  name TEXT PRIMARY KEY,
  axes TEXT[] NOT NULL,         -- names, in order
  bounds BIGINT[] NOT NULL,     -- indices of axis n go from 0 to bounds[n] - 1
  dtype TEXT NOT NULL,          -- float64, float32, int64, bool, complex128 or complex64
  fill TEXT NOT NULL,           -- value of every index that no row gives, as in 0.0, -inf, 3, true or (1+2j)
  tiles BIGINT[] NOT NULL,      -- of every axis: 1 where it is a key column, 0 where it lies inside the arrays
  relation TEXT[] NOT NULL,     -- table or view to read from: schema and name, maybe the database before; or one path
  key_columns TEXT[] NOT NULL,  -- of the axes that are keys, in order
  value_column TEXT,            -- numbers, or flat arrays in row-major order; a complex number is two elements of an
                                -- array, its real and imaginary part; NULL where every row counts as 1
  casts BOOLEAN NOT NULL,       -- whether columns must be cast when they are read
  is_owned BOOLEAN NOT NULL,    -- whether the table was made when the tensor was loaded
  dictionaries TEXT[],          -- of every axis: the dictionary of its natural keys; NULL where its indices are plain
  holds_keys BOOLEAN NOT NULL DEFAULT FALSE,  -- whether key columns of such axes hold natural keys, and not indices
  list_relation TEXT[],         -- the table that holds the entries in lists, of which the relation is a view; else NULL
  list_tiles BIGINT[],          -- of every axis, in that table: 0 without a key column, else the indices that share a key
  list_axes BIGINT[],           -- in that table: the axes with lists of positions, from 0, in the order that sorts them
  statistics TEXT,              -- of the rows as they were loaded, and the state of the table that they are of
  axis_counts TEXT,             -- of the same rows: how many entries every index of every axis has
  owner TEXT DEFAULT CURRENT_USER  -- role that entered the row; NULL where an earlier version did, which did not say
);
-- The dictionaries of natural keys; an index is the position of its key. Dictionaries only grow.
CREATE TABLE IF NOT EXISTS sparseeinsum.dictionaries (
  name TEXT PRIMARY KEY,
  key_type TEXT NOT NULL,       -- TEXT, DATE, TIMESTAMP, TIMESTAMPTZ, UUID or BIGINT
  size BIGINT NOT NULL,         -- indices go from 0 to size - 1
  relation TEXT[] NOT NULL,     -- the table of its indices and keys: schema and name
  owner TEXT DEFAULT CURRENT_USER  -- role that made it
);
