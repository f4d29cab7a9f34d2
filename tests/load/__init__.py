"""Many clients at once, the well-behaved among the others, and what the daemon is like after them."""
