"""A kernel or a sequence that runs again and again, moved by a clock, a mouse and sliders."""
