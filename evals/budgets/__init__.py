"""Whether runs keep their budgets, whatever a model does; looked at from outside (docs/budgets.md)."""
