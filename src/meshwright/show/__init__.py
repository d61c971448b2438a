"""How answers look: text for a terminal, and JSON. The only room with units that aren't SI."""
