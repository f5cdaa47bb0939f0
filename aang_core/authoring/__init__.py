"""New plug-ins, complete from the start."""
