"""Errors a person can act on: each message is one sentence that says what is wrong and what to do."""


class EginError(Exception):
    """Base of all errors the app prints as one line instead of a traceback."""


class DataError(EginError):
    """The data cannot be found, read or used as given."""


class ConfigError(EginError):
    """An option or a value is not one of the valid ones."""


class TrainingError(EginError):
    """Training cannot start or go on."""
