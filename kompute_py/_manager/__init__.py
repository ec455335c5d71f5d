"""Manager, which makes everything; the process's Managers; the end of the program."""
