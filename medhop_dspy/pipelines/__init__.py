"""The programs: control flow, no prompts."""
