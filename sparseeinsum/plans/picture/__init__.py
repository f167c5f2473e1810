"""Picture: a plan as one page that a browser shows without anything else: drawing, tables, SQL."""
