{#-
  A query that computes a program of Einstein summations, planned whenever it runs on the rows that are there then. For
  DuckDB: it needs Python beside the database.

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
  {%- do exceptions.raise_compiler_error(
    "einsum() is for DuckDB; on PostgreSQL, compile the program into models: sparseeinsum compile --dbt"
  ) -%}
{%- endif -%}
{%- endmacro %}
