"""Ratios against plain runc and against containers without a GPU, taken in one run, in turns."""
