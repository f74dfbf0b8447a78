"""Pure mathematics on arrays: no files, no flags, no dataset names."""
