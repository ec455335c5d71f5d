"""Values that a Manager's operations read and wrote: faults in them, snapshots, records."""
