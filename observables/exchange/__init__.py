"""Samples in the forms that other libraries take: one file per library."""
