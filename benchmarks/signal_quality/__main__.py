"""Run ``aang signal-quality``, which :mod:`benchmarks.signal_quality.plugin` registers.

python -m benchmarks.signal_quality --space td --weighter single-task --quality-sample 8
"""

import sys
from pathlib import Path

from aang_core.cli import main

main(["--plugin", str(Path(__file__).with_name("plugin.py")), "signal-quality", *sys.argv[1:]])
