"""Tuning of kernels: the scale of coordinates, the step size, and the number of transitions at a level."""
