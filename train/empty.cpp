// Placeholder removed once the folder has sources.
