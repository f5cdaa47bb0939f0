"""SetFit as a candidate of ``aang best`` (Tunstall et al., 2022)."""
