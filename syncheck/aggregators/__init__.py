"""From features to P(faithful): three kinds of classifier, saved without pickle."""

from syncheck.aggregators.aggregator import Aggregator
from syncheck.aggregators.estimators import make_aggregator

__all__ = ["Aggregator", "make_aggregator"]
