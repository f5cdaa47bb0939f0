"""Everything AANG raises on purpose.

Every message says what was wrong, where (file, line, column, option or name) and what to do about
it. The command line prints such an error without a traceback and exits with status 2.
"""


class AangError(Exception):
    """Root of the family: catch this to catch everything that AANG raises on purpose."""


class DataError(AangError):
    """A file of the user's cannot be used: missing, malformed, empty or inconsistent."""


class ModelError(AangError):
    """A model folder or hub name cannot be loaded as an encoder."""


class ConfigError(AangError):
    """An option, a configuration file or a space file is wrong."""


class UnknownNameError(AangError):
    """A primitive, weighter, space or plug-in name that nobody has registered."""


class AmbiguousNameError(AangError):
    """A short name that two plug-ins own; ``distribution:name`` picks one."""


class PluginError(AangError):
    """A plug-in that cannot be loaded or does not keep the contract of its stage."""


class WeighterError(PluginError):
    """A weighter that asks a workbench for what cannot be done."""


class StorageError(AangError):
    """A file cannot be written: the disk is full, read-only, or something else is in the way."""


class LockedError(AangError):
    """Another process writes into the folder."""


class NumericalError(AangError):
    """A loss or gradient is NaN or infinite."""


class OutOfMemoryError(AangError):
    """There is not enough memory for a step, however few rows go through the model at once."""
