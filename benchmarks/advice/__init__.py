"""A figure for each advice of docs/inside/advice.md, measured on lavapipe: `./dev bench advice`."""
