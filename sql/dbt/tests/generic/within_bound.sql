{#- The indices in a key column: whole numbers from 0 to below `bound`. -#}
{% test within_bound(model, column_name, bound) %}
SELECT
  *
FROM {{ model }}
WHERE
  {{ column_name }} < 0 OR {{ column_name }} >= {{ bound }}
{% endtest %}
