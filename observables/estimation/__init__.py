"""The one estimator behind every answer: targets, moments, weighted sums, and their errors."""
