{#-
  A query that computes a program of Einstein summations, planned whenever it runs on the rows that are there then. It needs
  Python beside DuckDB, or in the PostgreSQL server.

    program: its text, as in 'Y[i, k] = sum(A[i, j] * B[j, k])'. Tensors are tables of their names.
    reads: the tables, as ref(...) or source(...), so that dbt builds them before.
    output: which result, where the program has several.
-#}
{% macro einsum(program, reads, output=none) -%}
{{ return(adapter.dispatch('einsum', 'sparseeinsum')(program, reads, output)) }}
{%- endmacro %}

{% macro duckdb__einsum(program, reads, output) -%}
{%- if execute -%}
  {%- set schema = run_query("SELECT current_schema()").rows[0][0] -%}
  {%- for relation in reads if relation.schema and relation.schema | lower != schema | lower -%}
    {%- do exceptions.raise_compiler_error(
      "einsum() looks for tensors in the schema " ~ schema ~ ", and " ~ relation ~ " is in another; make a view of it "
      ~ "there, or compile the program: sparseeinsum compile --dbt"
    ) -%}
  {%- endfor -%}
{%- endif -%}
SELECT
  *
FROM einsum({{ dbt.string_literal(dbt.escape_single_quotes(program)) }}
  {%- if output is not none %}, output := {{ dbt.string_literal(output) }}{% endif %})
{%- endmacro %}

{% macro postgres__einsum(program, reads, output) -%}
{%- if execute -%}
  {%- do sparseeinsum.require_python_in_server('einsum()') -%}
  {%- set schemas = run_query("SELECT unnest(current_schemas(false))").columns[0].values() | map('string') | list -%}
  {%- for relation in reads if relation.schema and relation.schema not in schemas -%}
    {%- do exceptions.raise_compiler_error(
      "einsum() looks for tensors in the schemas of the search_path (" ~ schemas | join(", ") ~ "), and " ~ relation
      ~ " is in another; add it to search_path in profiles.yml, or compile the program: sparseeinsum compile --dbt"
    ) -%}
  {%- endfor -%}
{%- set arguments = [dbt.string_literal(dbt.escape_single_quotes(program))] -%}
{%- if output is not none -%}
  {%- do arguments.append("output => " ~ dbt.string_literal(output)) -%}
{%- endif -%}
SELECT
  *
FROM sparseeinsum.einsum({{ arguments | join(", ") }}) AS result(
  {{- run_query("SELECT sparseeinsum.einsum_columns(" ~ arguments | join(", ") ~ ")").rows[0][0] -}}
)
{%- endif -%}
{%- endmacro %}

{#- Refuses a PostgreSQL database without the functions that plan programs in the server. -#}
{% macro require_python_in_server(function) -%}
{%- set installed = run_query("SELECT 1 FROM pg_catalog.pg_extension WHERE extname = 'sparseeinsum_python'") -%}
{%- if installed.rows | length == 0 -%}
  {%- do exceptions.raise_compiler_error(
    function ~ " needs Python in the server: run `sparseeinsum install postgres --python` on its machine, and CREATE "
    ~ "EXTENSION sparseeinsum_python CASCADE in the database. Or compile the program: sparseeinsum compile --dbt"
  ) -%}
{%- endif -%}
{%- endmacro %}
