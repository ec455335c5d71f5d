"""Memory that others see, or share."""
