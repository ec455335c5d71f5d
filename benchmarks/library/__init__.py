"""The part `library`: time per element of each function of `kp.ops`, beside NumPy's, on lavapipe."""
