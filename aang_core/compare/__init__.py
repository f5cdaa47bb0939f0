"""Methods × tasks × seeds: planned, run in processes of their own, and compared honestly."""
