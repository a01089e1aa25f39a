"""The table of the molecule benchmark: scores and CPU times by data, split and model, of the fits that have finished."""


def format_table(results, fits) -> str:
    return results.to_string()
