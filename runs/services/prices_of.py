"""What a model costs, by the price table of its provider."""

from runs.engine.types import ModelSettings, Prices
from runs.models import ProviderModel


def prices_of(model: ModelSettings) -> Prices | None:
    """Return the prices of a model; None where nobody has entered any."""
    row = ProviderModel.objects.filter(
        provider_id=model.provider_id or 0, name=model.model
    ).first()
    if row is None or row.input_price is None:
        return None
    return Prices(
        input=float(row.input_price),
        cached_input=None if row.cached_price is None else float(row.cached_price),
        output=float(row.output_price or 0),
    )
