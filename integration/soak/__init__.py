"""What takes long: many rounds without growth, and kill -9 at any moment."""
