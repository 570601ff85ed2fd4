"""Tables that steer queries and are never evidence."""
