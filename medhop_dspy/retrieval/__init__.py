"""From files to ranked passages."""
