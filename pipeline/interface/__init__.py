"""What people see and type: commands, parameters, pages."""
