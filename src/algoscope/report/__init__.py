"""Charts and pages, from saved numbers only."""
