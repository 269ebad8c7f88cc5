"""The one exception a user is meant to read."""


class LongcaError(Exception):
    """A mistake in what the user gave: config, command line, corpus, mask or record file.

    The message is one line that names the file or option, the key or place, the value found and what would be right.
    The command line prints it without a traceback and exits with code 2.
    """
