"""Misspelt names and wrong types, as beginners write them."""

import numpy as np

import kompute_py as kp

mgr = kp.Manager()
x = np.zeros(4, np.float32)
t = mgr.tensor(x)
k = mgr.kernel("void main() {}")

kp.Manger()  # error
kp.OpMul([t, t, t])  # error
kp.list_device()  # error
kp.MemoryTypes.devise  # error
kp.compile("void main() {}", optimise=True)  # error
kp.ops.matmull(t, t)  # error
kp.ops.no_such(1)  # error
kp.ops.concatenat([t])  # error
kp.random.Generatr(1)  # error
kp.random.unifrom(3)  # error
kp.random.Generator(seed="one")  # error
kp.random.Generator(1).normall(3)  # error
kp.random.Generator(1).normal(shap=(3,))  # error
kp.notebook.sliderz(k)  # error
kp.errors.KomputError  # error
kp.typing.Languag  # error
kp.dask.map_block  # error
kp.Manager(0, wait_mod="spin")  # error
kp.Manager(0, wait_mode="sleep")  # error
kp.Manager(memory_limit=[])  # error
kp.Manager(devise=1)  # error
t.raed()  # error
t.write()  # error
t.cpu()  # error
t.fill(0, 1, 2, 3, 4)  # error
t.shap  # error
mgr.tensr(x)  # error
mgr.zeros(3, dtyp=np.int32)  # error
k.dispach(t)  # error
k.specialise(N=3)  # error
k.submit(t, wait=3)  # error
kp.ops.sort.specialise()  # error
seq = mgr.sequence()
seq.recrd(kp.OpSyncDevice([t]))  # error
seq.eval(kp.OpSyncDevice)  # error
