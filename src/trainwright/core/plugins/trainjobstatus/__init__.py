"""The plugin that tells pods where to report their progress."""
