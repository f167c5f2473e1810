{{ config(materialized='table') }}
SELECT page AS j, CAST(1 AS DOUBLE PRECISION) AS val FROM {{ ref('links') }} GROUP BY page
