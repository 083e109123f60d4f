"""The samples behind an answer: replicas of ladders and groups of chains, with their base weights."""
