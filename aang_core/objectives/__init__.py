"""Objectives: their stages, the objectives composed of them, spaces of objectives, and recipes."""
