"""What can be wrong with the app or its settings; raised while starting only. Texts name what to mend."""


class HostError(Exception):
    """The host cannot start. The text is shown to the developer in one line, without a traceback."""


class AppError(HostError):
    """The function app cannot be indexed, or binds something in a way that the worker refuses."""


class SettingError(HostError):
    """A setting is missing or cannot be read."""


class PortBusyError(HostError):
    """Another process listens on the port."""
