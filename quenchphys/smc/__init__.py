"""Sequential Monte Carlo: families of levels, weighted populations, one step of a ladder, its loop and its evidence."""
