"""Mean-field theory of scalar fields: the uniform field, Gaussian fluctuations around it, and both put together."""
