"""Finding, loading and checking plug-ins."""

from aang_testing.conformance import Options, checks_of, warnings_of
from aang_testing.expectation import PROPERTY
from aang_testing.names import misspelled_traits
from aang_testing.new_plugin import write_plugin
from aang_testing.rows import MASK, VOCABULARY, SampleRows
from aang_testing.workbench import RecordingWorkbench

from aang_core.cli.output import ACTING, one_line, printable
from aang_core.contracts import CheckedData, CheckedOutput, CheckedRepresentation, CheckedTransform
from aang_core.errors import NumericalError, OutOfMemoryError, StorageError, WeighterError
from aang_core.plugins import PluginRecord, Status
from aang_core.plugins.hooks import DECLARATION, check_plugin_api, hook_names
from aang_core.plugins.loading import DISABLE_VARIABLE, LOAD_VARIABLE, plugin_differences, plugin_of
from aang_core.plugins.primitive import ObjectiveEntry, RecipeEntry, SpaceEntry
from aang_core.plugins.registry import standard_plugins
from aang_core.tasks.checked_weighter import CheckedWeighter
