"""Documents with linked mentions, Wikipedia, priors and candidates."""
