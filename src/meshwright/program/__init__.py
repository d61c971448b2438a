"""What a plan makes a rank do: the order of its operations, and every collective and transfer."""
