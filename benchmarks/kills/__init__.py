"""Parts of ``benchmarks.kill_resume``: the small task, and processes that start at once."""
