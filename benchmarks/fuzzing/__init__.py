"""What ``benchmarks/fuzz.py`` is made of: targets, and inputs for them."""
