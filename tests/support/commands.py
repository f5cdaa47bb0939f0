"""What the command line prints and how it streams."""

from aang_core.cli.app import aang
from aang_core.cli.output import echo, note
from aang_core.cli.progress import ProgressBar, counting
from aang_core.cli.tables import print_table
from aang_core.cli.train import given_options
