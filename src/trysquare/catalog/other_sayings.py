OTHER_SAYINGS: tuple[tuple[str, str], ...] = ()
