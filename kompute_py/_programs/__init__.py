"""Programs: what scripts recorded, in a file and on other devices."""
