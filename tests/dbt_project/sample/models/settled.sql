{{ config(materialized='table') }}
-- ranks after three steps of a loop, which runs whenever this model is built
{{ sparseeinsum.iterate(
    'share[j, i] = links[i, j] / sum[k](links[i, k]); next_start[j] = 0.15 + 0.85 * sum[i](share[j, i] * start[i])',
    state=['start'],
    steps=3,
    until='changed == 0',
    reads=[ref('start'), ref('links')]
) }}
