"""Files of ladders, walks and unfinished runs."""
