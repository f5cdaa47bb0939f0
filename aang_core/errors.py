"""Every exception that AANG raises on purpose.

Every message says what was wrong, where (file, line, column, option or name) and what to do about
it. The command line prints such an error without a traceback and exits with status 2.
"""


class AangError(Exception):
    """Base class of every exception that AANG raises on purpose.

    Examples:
        >>> from aang_core import AangError, Objective, load_plugins
        >>> try:
        ...     Objective.parse("task/bert-op", load_plugins().registry)
        ... except AangError as error:
        ...     print("refused:", type(error).__name__)
        refused: ConfigError
    """


class DataError(AangError):
    """A file of the user cannot be used: it is missing, malformed, empty or inconsistent."""


class ModelError(AangError):
    """A model folder or hub name cannot be loaded as an encoder."""


class ConfigError(AangError):
    """An option, a configuration file or a space file is wrong."""


class UnknownNameError(AangError):
    """No plug-in registers a primitive, weighter, space or plug-in of this name."""


class AmbiguousNameError(AangError):
    """Two plug-ins register this short name; ``distribution:name`` picks one."""


class PluginError(AangError):
    """A plug-in cannot be loaded, or breaks the contract of its stage."""


class WeighterError(PluginError):
    """A weighter asks its workbench for something impossible."""


class StorageError(AangError):
    """A file cannot be written, for example because the disk is full or read-only."""


class LockedError(AangError):
    """Another process is writing to the folder."""


class NumericalError(AangError):
    """A loss or a gradient is NaN or infinite."""


class SharedError(AangError):
    """What one process of a training cannot do, so that all of them end; the first one says so."""


class OutOfMemoryError(AangError):
    """A step does not fit into memory, even with one row at a time.

    Attributes:
        rows: how many rows of a step went through the body at once; None outside of a step.
        least: how many of them must stay together.
    """

    def __init__(
        self,
        message: str,
        *,
        rows: int | None = None,
        least: int = 1,
    ) -> None:
        super().__init__(message)
        self.rows = rows
        self.least = least
