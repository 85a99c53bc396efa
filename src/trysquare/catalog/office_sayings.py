OFFICE_SAYINGS: tuple[tuple[str, str], ...] = ()
