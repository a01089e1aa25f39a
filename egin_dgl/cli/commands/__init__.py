"""The commands of `egin`, one per file. Each imports libraries that compute where it uses them, so that help and errors in arguments are printed at once."""
