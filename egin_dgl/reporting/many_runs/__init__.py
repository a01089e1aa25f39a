"""Tables, ranks and comparisons over many runs."""
