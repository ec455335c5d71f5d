"""Values of operations, and reports of shaders while they run."""
