"""What the command line prints and how it streams."""

from aang.cli.progress import Lines, TrainingProgress, counting
from aang.cli.schema_options import given_options

from aang_core.cli.app import aang
from aang_core.cli.output import echo, note, print_table
