"""For notebooks: rich representations and the magics of ``%load_ext kompute_py``.

Nothing here is imported before it is used. Representations need NumPy alone, the magics IPython (the extra ``notebook``).
"""
