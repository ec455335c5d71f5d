"""Why waits stall under a validation layer: who holds them, and what the driver says meanwhile (`./dev
stall`).
"""
