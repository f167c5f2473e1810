"""Dbt: a plan as models of a dbt project, which fail where data are no longer what the plan is exact for."""
