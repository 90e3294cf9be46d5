"""Data made by a simulated event camera. They have "simulated" in their names wherever they are shown."""
