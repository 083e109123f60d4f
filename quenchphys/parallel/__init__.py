"""Running in parallel: devices, sharding, processes, loops, random numbers, sums, and the cache of compiled programs."""
