"""Event by event: schedules replayed on a timeline."""
