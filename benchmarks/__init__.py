"""Measurements of what AANG costs and gains, and the program that makes the demo's encoder."""
