"""Whether answers over several documents cite them all, with sub-agents and without (docs/budgets.md)."""
