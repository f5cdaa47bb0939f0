"""What Python programs and notebooks call: training on data in memory."""
