"""The tasks of Zhang et al. 2024: JSON formatting, pronouns changing, Bias in Bios and CounterFact."""

from holdfast.tasks.evaluate import BASELINES, CATALOGUE, SYNTHETIC, Settings, draw_samples, load_data, request_of, run, variants_of

__all__ = ["BASELINES", "CATALOGUE", "SYNTHETIC", "Settings", "draw_samples", "load_data", "request_of", "run", "variants_of"]
