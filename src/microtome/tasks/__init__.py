"""What models are measured on: tasks, their rows, encodings, metrics and scores."""
