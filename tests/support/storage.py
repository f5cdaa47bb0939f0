"""Durable files, locks and checkpoint stores."""

from aang_core.storage import csv_line
from aang_core.storage.durable import write_file, write_folder, writing
from aang_core.storage.lock import (
    HELD,
    LOCK,
    Holder,
    holder_of,
    locked,
    process_start,
    refuse_if_locked,
    take_from,
)
from aang_core.storage.run_folder import MANIFEST, CheckpointStore, RunFolder
from aang_core.storage.yaml_source import NumberLoader, parse_yaml
