"""The objectives layer: stages, the objectives made of them, spaces of objectives, and recipes."""
