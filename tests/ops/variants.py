"""Functions of the library held to one of their variants."""

from __future__ import annotations

import kompute_py as kp


def only(function, variant):
    """The function with this variant alone, as on devices that have no other."""
    base = function.__wrapped__
    made = {"variants": lambda self, ksel: [variant], "__doc__": "One variant."}
    return kp.CustomOp.register(type(f"{base.__name__}_in_{variant}", (base,), made))
