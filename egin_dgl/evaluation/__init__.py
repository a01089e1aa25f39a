"""What a trained fold is worth: histories, metrics, protocols and their statistics. Pure: nothing here trains or reads a file."""
