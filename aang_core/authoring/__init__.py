"""Writes new plug-ins."""
