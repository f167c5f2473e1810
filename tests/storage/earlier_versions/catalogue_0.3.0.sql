CREATE SCHEMA sparseeinsum;
CREATE TABLE IF NOT EXISTS sparseeinsum.tensors (
  name TEXT PRIMARY KEY,
  axes TEXT[] NOT NULL,
  bounds BIGINT[] NOT NULL,
  dtype TEXT NOT NULL,
  fill TEXT NOT NULL,
  tiles BIGINT[] NOT NULL,
  relation TEXT[] NOT NULL,
  key_columns TEXT[] NOT NULL,
  value_column TEXT,
  casts BOOLEAN NOT NULL,
  is_owned BOOLEAN NOT NULL,
  dictionaries TEXT[],
  holds_keys BOOLEAN NOT NULL DEFAULT FALSE,
  list_relation TEXT[],
  list_tiles BIGINT[],
  list_axes BIGINT[],
  owner TEXT DEFAULT CURRENT_USER
);
CREATE TABLE IF NOT EXISTS sparseeinsum.dictionaries (
  name TEXT PRIMARY KEY,
  key_type TEXT NOT NULL,
  size BIGINT NOT NULL,
  relation TEXT[] NOT NULL,
  owner TEXT DEFAULT CURRENT_USER
);
CREATE TABLE sparseeinsum.dictionary_person (index BIGINT NOT NULL PRIMARY KEY, key TEXT COLLATE "C" NOT NULL);
INSERT INTO sparseeinsum.dictionary_person VALUES (0, 'al'), (1, 'bob'), (2, 'zoe');
INSERT INTO sparseeinsum.dictionaries VALUES ('person', 'TEXT', 3, ARRAY['sparseeinsum', 'dictionary_person'], CURRENT_USER);
CREATE TABLE main.friends (src BIGINT, dst BIGINT, val DOUBLE PRECISION);
INSERT INTO main.friends VALUES (0, 1, 2.0), (1, 2, 1.0), (2, 0, 3.0);
CREATE TABLE main."From" (who TEXT, v DOUBLE PRECISION);
INSERT INTO main."From" VALUES ('bob', 4.0);
INSERT INTO sparseeinsum.tensors VALUES
  ('Friends', ARRAY['src', 'dst'], ARRAY[3, 3], 'float64', '0.0', ARRAY[1, 1], ARRAY['main', 'friends'], ARRAY['src', 'dst'], 'val',
   FALSE, TRUE, ARRAY['person', 'person'], FALSE, NULL, NULL, NULL, CURRENT_USER),
  ('X', ARRAY['who'], ARRAY[3], 'float64', '1.0', ARRAY[1], ARRAY['main', 'From'], ARRAY['who'], 'v', FALSE, FALSE,
   ARRAY['person'], TRUE, NULL, NULL, NULL, CURRENT_USER);
