"""The commands of `egin`, one a file. Each imports what computes where it is used, so that help and mistakes are told at once."""
