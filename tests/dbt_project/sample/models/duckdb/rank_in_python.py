"""The same in a Python model, planned whenever it is built."""

import sparseeinsum as se

PROGRAM = """
share[j, i] = links[i, j] / sum[k](links[i, k])
first[j] = 0.15 + 0.85 * sum[i](share[j, i])
second[j] = 0.15 + 0.85 * sum(share[j, i] * first[i])
rank[j] = 0.15 + 0.85 * sum(share[j, i] * second[i])
"""


def model(dbt, session):
    """Ranks as a frame."""
    dbt.config(materialized="table")
    dbt.ref("links")
    ranks = se.connect(session).run(PROGRAM)["rank"]
    return ranks.arrow()
