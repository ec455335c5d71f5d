"""Random programs, as users write them, against a NumPy model that knows nothing of devices.

``./dev random`` runs them on every driver and profile; `tests/recording/test_differential.py` runs a sample
of each.

A program makes tensors, views of them, images, and several tensors over one array, records and submits
sequences on several queues, holds work back for semaphores, drops and destroys what is in flight, maps
memory and edits host copies, rebuilds algorithms; it calls, records and submits operations of the library and
of its own, repeats with an exchange, passes on scratch memory, draws random numbers, assigns to parts
(`arrays`, `library`), donates and runs threads (`giving`). It learns in every way there is that work is done
(`learning`), and looks at once at every byte that this makes visible: "done" must mean "visible". It counts
what it does (`Program.kinds`). `faults` are put back on purpose, and must be found.

The model (`memories`): a `device` tensor is two arrays, the host's copy and the device's contents, which only
OpSyncDevice and OpSyncLocal carry over, and the first use of the device's side, once; `host` and
`deviceAndHost` are one array; `storage` has the device's side only. A submission happens at once, in the
order of submission. The host looks at bytes that no unlearned work writes, and edits bytes that no unlearned
work touches: on memory that host and device share in place, atoms (nonCoherentAtomSize) in place of bytes.
Evaluations warn of what they must, and of nothing else (`warned`).

A program is the number of a program under a seed: `--seed S --first N --programs 1` repeats it.
"""
