"""The main job: every chapter of the thesis and one report."""
