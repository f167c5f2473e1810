{#-
  Guards for models that a plan was compiled into: the rows that they read must be such that the plan is exact for them.
  They stand in the statement that computes the model, which therefore sees the rows that are checked.
-#}

{#- The rows of a query, or an error that says which of its inputs no longer fits the plan.

    program: what was compiled.
    problems: for every tensor that the query reads, a query of one text, which is empty where nothing is wrong. -#}
{% macro as_planned(program, problems) -%}
{%- set checks = [] -%}
{%- for tensor, query in problems.items() -%}
  {%- do checks.append(sparseeinsum.require(program, tensor, query)) -%}
{%- endfor -%}
WITH checked AS MATERIALIZED (
{{ checks | join('\n  UNION ALL\n') }}
)
SELECT
  *
FROM (
{{ caller() }}
) AS planned
WHERE
  (SELECT COUNT(*) FROM checked WHERE is_as_planned) = {{ checks | length }}
{%- endmacro %}

{#- A query of one row that is true, or an error that says what is wrong with a tensor. -#}
{% macro require(program, tensor, problems) -%}
SELECT
  CASE
    WHEN problems = '' THEN TRUE
    ELSE {{ sparseeinsum.error_of("CONCAT('tensor " ~ tensor ~ " is not as it was when " ~ program ~ " was compiled: ', problems, '; mend it, or compile the program again')") }}
  END AS is_as_planned
FROM (
{{ problems }}
) AS found
{%- endmacro %}

{#- An expression of type BOOLEAN that ends the statement with a text. -#}
{% macro error_of(text) -%}
{{ return(adapter.dispatch('error_of', 'sparseeinsum')(text)) }}
{%- endmacro %}

{% macro duckdb__error_of(text) -%}
error({{ text }})
{%- endmacro %}

{#- PostgreSQL has no function that fails with a text of ours; a cast that fails shows what it was given. -#}
{% macro postgres__error_of(text) -%}
CAST({{ text }} AS BOOLEAN)
{%- endmacro %}
