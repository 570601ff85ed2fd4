"""The knowledge-graph index of Hybrid-IR: extraction, linking, entity scores."""
