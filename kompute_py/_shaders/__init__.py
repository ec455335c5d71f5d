"""SPIR-V to what a caller needs to know of it: signatures, layouts, constants. No device."""
