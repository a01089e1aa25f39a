"""For someone who looks at one run: its progress, its table, its pictures, its page in TensorBoard."""
