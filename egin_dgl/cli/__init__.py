"""The command line: from words to calls of the library, which never imports this room."""
