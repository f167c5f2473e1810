{#- The rows of a tensor relation: no two have the same keys. `keys`: its key columns; without any, one row at most. -#}
{% test keys_are_unique(model, keys) %}
SELECT
  {% for key in keys %}{{ adapter.quote(key) }}, {% endfor %}COUNT(*) AS times
FROM {{ model }}
{% if keys -%}
GROUP BY
  {% for key in keys %}{{ adapter.quote(key) }}{{ ", " if not loop.last }}{% endfor %}
{% endif -%}
HAVING
  COUNT(*) > 1
{% endtest %}
