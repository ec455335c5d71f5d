"""Looking at what runs: values of operations, and reports of shaders."""
