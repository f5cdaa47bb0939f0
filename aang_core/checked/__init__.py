"""What primitives and weighters hand over, checked where it is taken."""
