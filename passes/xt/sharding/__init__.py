"""How values and ops are divided among the ranks of one axis of a mesh: rules, propagation, choice, execution."""
