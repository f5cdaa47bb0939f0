"""Comparisons: plans, runs, statistics and tables."""
