"""Model files, model servers and the handle that talks to them."""
