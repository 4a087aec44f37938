"""Servers of checked answers: the gateway before a generator, the model of our own, and the page (extra ``serve``)."""
