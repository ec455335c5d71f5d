"""Programs of fewer than a hundred lines, each with a picture: ``python -m kompute_py_gallery``.

They need ``pip install "kompute-py[examples]"``.
"""
