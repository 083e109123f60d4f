"""Sequential Monte Carlo: levels, densities, populations, mutation, and the loop that runs them."""
