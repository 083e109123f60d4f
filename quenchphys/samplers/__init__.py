"""The samplers a user calls: quenched and tempered ladders, multicanonical chains, and the choice of softness."""
