{{ config(materialized='table') }}
-- how often pages are linked, planned whenever this model is built
{{ sparseeinsum.einsum('linking[j] = sum(links[i, j])', reads=[ref('links')]) }}
