"""What edges are worth: scores on a dataset and on variants of it with perturbed edges, as a table and a picture."""
