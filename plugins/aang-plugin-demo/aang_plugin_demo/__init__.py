"""A small end task made of text that every Python installation carries."""
