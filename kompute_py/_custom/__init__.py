"""The parts of functions: signatures, what select decides, and the kernels that generate writes."""
