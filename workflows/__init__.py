"""What a user runs: coexistence, finite-size scaling, Z(beta)."""
