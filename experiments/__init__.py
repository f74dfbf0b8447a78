"""One script per experiment: flags and one chain of calls."""
