"""Reports of runs: the page in a real browser, and pictures."""
