"""What moves between the host and the device, and when."""
