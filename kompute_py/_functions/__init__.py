"""Functions: what a `kp.CustomOp` declares, called, bound, submitted, and prepared for the next call."""
