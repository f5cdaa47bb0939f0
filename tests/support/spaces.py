"""Stages, objectives, spaces and recipes."""

from aang.config.schema import DEFAULT_RECIPE

from aang_core.objectives.space import SpaceFile, parse_space_file, read_space_file
from aang_core.objectives.stages import Label
from aang_core.objectives.stages.rows import NoOp
