"""Empty sanitizers, because the tests record nothing."""


def add_remove_header_sanitizer(**options: str) -> None:
    pass


def add_general_regex_sanitizer(**options: str) -> None:
    pass
