"""Reports for people: progress, tables, figures and cards."""
