{#- Before anything runs: the functions that models call must be there. -#}
{% macro require_functions() %}
  {%- if execute -%}
    {%- do adapter.dispatch('require_functions', 'sparseeinsum')() -%}
  {%- endif -%}
{% endmacro %}

{% macro duckdb__require_functions() %}
  {%- set found = run_query("SELECT 1 FROM duckdb_functions() WHERE function_name = 'tensor_sum_scaled' LIMIT 1") -%}
  {%- if found.rows | length == 0 -%}
    {%- do exceptions.raise_compiler_error(
      "this DuckDB has no functions of sparseeinsum. Add its plugin to the target in profiles.yml:\n\n"
      ~ "    plugins:\n      - module: sparseeinsum.dbt_plugin\n\n"
      ~ "and install the package where dbt runs: pip install sparseeinsum"
    ) -%}
  {%- endif -%}
{% endmacro %}

{% macro postgres__require_functions() %}
  {%- set found = run_query("SELECT 1 FROM pg_catalog.pg_proc WHERE proname = 'tensor_sum_scaled' AND pg_function_is_visible(oid) LIMIT 1") -%}
  {%- if found.rows | length == 0 -%}
    {%- set available = run_query("SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'sparseeinsum'") -%}
    {%- if available.rows | length == 0 -%}
      {%- do exceptions.raise_compiler_error(
        "this server has no functions of sparseeinsum. Run `sparseeinsum install postgres` on its machine, or, where "
        ~ "no library can be installed, `sparseeinsum install postgres --portable postgresql://...`"
      ) -%}
    {%- endif -%}
    {%- do run_query("CREATE EXTENSION IF NOT EXISTS sparseeinsum") -%}
  {%- endif -%}
{% endmacro %}
