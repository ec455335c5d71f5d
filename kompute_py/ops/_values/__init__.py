"""Values by elements, sums and their like over axes, and running ones."""
