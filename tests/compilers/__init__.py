"""Source to SPIR-V."""
