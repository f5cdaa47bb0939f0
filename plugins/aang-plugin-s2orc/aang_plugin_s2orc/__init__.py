"""In-domain text from S2ORC, S2AG, peS2o and plain text files."""
