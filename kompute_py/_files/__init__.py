"""Files of tensors and pictures."""
