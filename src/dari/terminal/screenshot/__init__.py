"""Pictures of a screen, drawn from its cells, and what changed between two of them."""
