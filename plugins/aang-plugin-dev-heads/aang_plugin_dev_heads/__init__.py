"""Dev heads on rows drawn for them, and by logistic regression."""
