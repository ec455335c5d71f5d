"""How programs end: scripts that stop in every state that the package can be in, run again and again (`./dev
ends`).
"""
