"""Memory on a device: tensors, images, samplers, mappings, DLPack, copies between Managers."""
