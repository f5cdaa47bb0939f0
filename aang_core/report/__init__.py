"""Figures of what was measured and learned."""
