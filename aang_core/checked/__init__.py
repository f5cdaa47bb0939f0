"""Checks of what primitives and weighters return."""
