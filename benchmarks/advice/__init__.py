"""A figure for each advice of docs/guides/performance.md, measured on lavapipe: `./dev bench advice`."""
