"""Reasons for a run to stop; each message is a fact, then what to do next."""


class BenchError(Exception):
    """Something makes the numbers worthless, so none are printed for the step that raised it."""

    def __init__(self, fact: str, hint: str = "") -> None:
        super().__init__(f"{fact}\nhint: {hint}" if hint else fact)
