"""The user interface: commands, parameters, pages."""
