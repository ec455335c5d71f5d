"""Long runs whose resident memory must not grow: ``python -m tests.soak [--scale S]``, or ``./dev soak``."""
