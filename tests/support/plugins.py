"""Finding, loading and checking plug-ins."""

from aang_testing.authoring.new_plugin import write_plugin
from aang_testing.conformance import Options, checks_of, warnings_of
from aang_testing.expectation import PROPERTY
from aang_testing.rows import MASK, VOCABULARY, SampleRows
from aang_testing.workbench import RecordingWorkbench

from aang_core.checked.data import CheckedData
from aang_core.checked.output import CheckedOutput
from aang_core.checked.representation import CheckedRepresentation
from aang_core.checked.transform import CheckedTransform
from aang_core.checked.weighter import CheckedWeighter
from aang_core.errors import NumericalError, OutOfMemoryError, StorageError, WeighterError
from aang_core.plugins import PluginRecord, Status
from aang_core.plugins.comparison import plugin_differences
from aang_core.plugins.hooks import hook_names
from aang_core.plugins.interface import CHANGES, DECLARATION, check_plugin_api
from aang_core.plugins.loading import DISABLE_VARIABLE
from aang_core.plugins.registry import ObjectiveEntry, RecipeEntry, SpaceEntry
from aang_core.plugins.standard import (
    STANDARD,
    STANDARD_COMMANDS,
    STANDARD_OBJECTIVES,
    STANDARD_RECIPES,
    STANDARD_SPACES,
)
from aang_core.plugins.traits import misspelled_traits, unprovided_traits
from aang_core.printable import ACTING, one_line, printable
