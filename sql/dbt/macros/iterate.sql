{#-
  The last values of a tensor that a loop replaces in steps; the loop runs when dbt builds the model. It needs Python beside
  DuckDB, or in the PostgreSQL server.

    program: the text of a step, as in 'next_R[i] = 0.15 + 0.85 * sum(P[i, j] * R[j])'. Tensors are tables of their names.
    state: the names of the tensors that a step replaces; the model has the last values of the first. The tables stay as
      they are, and the model `rank` keeps the state R in the table `rank_R`.
    reads: the tables, as ref(...) or source(...), so that dbt builds them before.
    steps: the most steps.
    until: the condition that ends the loop, as in 'changed == 0'.
-#}
{% macro iterate(program, state, reads, steps=100, until=none) -%}
{%- if execute and flags.WHICH in ["run", "build"] -%}
  {%- do run_query(adapter.dispatch('iterate_query', 'sparseeinsum')(program, state, steps, until)) -%}
{%- endif -%}
SELECT
  *
FROM {{ adapter.quote(this.identifier ~ "_" ~ state[0]) }}
{%- endmacro %}

{#- The state, and what replaces it in a step or keeps it, as `'R': 'next_R'` between commas; names in quotes. -#}
{% macro state_pairs(state, prefix, mark) -%}
{%- set pairs = [] -%}
{%- for name in state -%}
  {%- do pairs.append(mark ~ name ~ mark ~ ": " ~ mark ~ prefix ~ name ~ mark) -%}
{%- endfor -%}
{{ return("{" ~ pairs | join(", ") ~ "}") }}
{%- endmacro %}

{% macro duckdb__iterate_query(program, state, steps, until) -%}
{%- set arguments = [
  dbt.string_literal(dbt.escape_single_quotes(program)),
  "state := MAP " ~ sparseeinsum.state_pairs(state, "next_", "'"),
  "steps := " ~ steps,
  "into_tensors := MAP " ~ sparseeinsum.state_pairs(state, this.identifier ~ "_", "'"),
] -%}
{%- if until is not none -%}
  {%- do arguments.append("until := " ~ dbt.string_literal(dbt.escape_single_quotes(until))) -%}
{%- endif -%}
{{ return("SELECT * FROM iterate(" ~ arguments | join(", ") ~ ")") }}
{%- endmacro %}

{% macro postgres__iterate_query(program, state, steps, until) -%}
{%- do sparseeinsum.require_python_in_server("iterate()") -%}
{%- set arguments = [
  dbt.string_literal(dbt.escape_single_quotes(program)),
  "state => '" ~ sparseeinsum.state_pairs(state, "next_", '"') ~ "'",
  "steps => " ~ steps,
  "into_tensors => '" ~ sparseeinsum.state_pairs(state, this.identifier ~ "_", '"') ~ "'",
] -%}
{%- if until is not none -%}
  {%- do arguments.append("until => " ~ dbt.string_literal(dbt.escape_single_quotes(until))) -%}
{%- endif -%}
{{ return("SELECT * FROM sparseeinsum.iterate(" ~ arguments | join(", ") ~ ")") }}
{%- endmacro %}
