"""Elements, sums, scans: their numbers."""
