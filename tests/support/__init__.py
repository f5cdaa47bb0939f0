"""What tests import of the inside of the project: a module that moves changes these files alone."""
