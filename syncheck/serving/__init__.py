"""Serving of checked answers: the gateway, the server of your own model, and their page (extra ``serve``)."""
