"""The part `device`: the functions of `kp.ops` on the machine's own GPU."""
