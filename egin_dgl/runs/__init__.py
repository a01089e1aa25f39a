"""Run and sweep directories: the only package that knows the name or the format of a file in them."""
