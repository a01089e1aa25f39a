"""The command line: from arguments to calls of the library, which never imports this package."""
