"""Reports of results, ladders and walks: one HTML page that needs nothing else."""
