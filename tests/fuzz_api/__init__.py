"""Every public callable of `kompute_py` with arguments that are seldom meant; ``python -m tests.fuzz_api``,
or ``./dev fuzz --api``.
"""
