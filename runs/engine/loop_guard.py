"""The loop guard detects a model that repeats itself."""

from runs.engine.types import AgentStep


class RepeatCounter:
    """Counts consecutive rounds that equal the round before."""

    def __init__(self) -> None:
        self.count = 0
        self._last: list[tuple[str, object, str]] | None = None

    def add(self, steps: tuple[AgentStep, ...]) -> None:
        """Compare one more round: its calls, inputs and observations."""
        this = [(s.action.tool, s.action.tool_input, s.observation) for s in steps]
        self.count = self.count + 1 if this == self._last else 0
        self._last = this

    @property
    def hint(self) -> str:
        """The hint for the model."""
        return (
            f"(You have done exactly this {self.count + 1} times with the same result. "
            "Do something else, or give your final answer.)"
        )
